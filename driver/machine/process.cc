#include "driver/machine/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "base/diagnostics.h"
#include "driver/machine/file_system.h"
#include "driver/machine/interrupt.h"
#include "driver/machine/local_files.h"

extern char** environ;

namespace gcompile {
namespace {

/// A started program whose output goes to an unlinked file.
struct Child {
  std::size_t index = 0;
  int output = -1;
};

int temporary_file() {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/output";
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) throw_errno("create", path);
  return descriptor;
}

pid_t start(const CommandLine& command, int output) {
  GC_CHECK(!command.empty());
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    errno = error;
    throw_errno("run", command[0]);
  }
  return pid;
}

std::string contents(int descriptor) {
  std::string text;
  char block[4096];
  lseek(descriptor, 0, SEEK_SET);
  for (ssize_t count = 0; (count = read(descriptor, block, sizeof(block))) > 0;) {
    text.append(block, static_cast<std::size_t>(count));
  }
  return text;
}

/// Ends what is still running when it goes away.
class Children {
 public:
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() {
    for (const auto& [pid, child] : running_) kill(pid, SIGTERM);
    for (const auto& [pid, child] : running_) {
      while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
      close(child.output);
    }
  }

  std::size_t count() const { return running_.size(); }

  void add(const CommandLine& command, std::size_t index) {
    const int output = temporary_file();
    try {
      running_[start(command, output)] = {index, output};
    } catch (...) {
      close(output);
      throw;
    }
  }

  /// Waits for one to end.
  std::size_t take(ProcessResult& result, std::vector<ProcessResult>& results) {
    for (;;) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, 0);
      if (pid < 0 && errno == EINTR) {
        throw_if_interrupted();
        continue;
      }
      if (pid < 0) throw_errno("wait for", "a program");
      const auto found = running_.find(pid);
      if (found == running_.end()) continue;
      const Child child = found->second;
      running_.erase(found);
      result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      result.output = contents(child.output);
      close(child.output);
      results[child.index] = result;
      throw_if_interrupted();
      return child.index;
    }
  }

 private:
  std::map<pid_t, Child> running_;
};

}  // namespace

std::vector<ProcessResult> run_processes(const std::vector<CommandLine>& commands, int jobs) {
  std::vector<ProcessResult> results(commands.size());
  Children children;
  bool failed = false;
  std::size_t next = 0;
  while (children.count() > 0 || (next < commands.size() && !failed)) {
    while (next < commands.size() && !failed && children.count() < static_cast<std::size_t>(jobs)) {
      children.add(commands[next], next);
      ++next;
    }
    ProcessResult result;
    children.take(result, results);
    failed = failed || result.status != 0;
  }
  return results;
}

ProcessResult run_process(const CommandLine& command) { return run_processes({command}, 1).front(); }

std::string command_text(const CommandLine& command) {
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + shell_quoted(word);
  return text;
}

}  // namespace gcompile
