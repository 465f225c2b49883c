#include "jinja/parser.h"

#include <algorithm>
#include <string_view>

#include "base/diagnostics.h"
#include "jinja/filters.h"
#include "jinja/lexer.h"

namespace gcompile {
namespace {

using Kind = TemplateToken::Kind;
using Expression = TemplateExpression;

constexpr int kMaxNesting = 64;

// Words that jinja2 reserves, and those of its statements that this subset leaves out.
constexpr std::string_view kReserved[] = {"and", "or",   "not",   "in",   "is",   "if",    "else", "elif",
                                          "for", "true", "false", "none", "True", "False", "None", "loop"};

bool is_reserved(std::string_view name) {
  return std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
}

std::string describe(const TemplateToken& token) {
  switch (token.kind) {
    case Kind::kOutputEnd:
      return "'}}'";
    case Kind::kTagEnd:
      return "'%}'";
    case Kind::kEnd:
      return "the end of the template";
    case Kind::kString:
      return "a string";
    default:
      return "'" + token.text + "'";
  }
}

class Parser {
 public:
  Parser(const std::string& name, const std::string& source) : tokens_(lex_template(name, source)) {
    result_ = std::make_unique<Template>();
    result_->name = name;
  }

  std::unique_ptr<Template> run() {
    result_->body = parse_body();
    if (peek().kind != Kind::kEnd) {
      fail(tokens_[next_ + 1], "unexpected tag '" + tokens_[next_ + 1].text + "'");
    }
    return std::move(result_);
  }

 private:
  const TemplateToken& peek() const { return tokens_[next_]; }
  const TemplateToken& take() {
    return tokens_[next_].kind == Kind::kEnd ? tokens_[next_] : tokens_[next_++];
  }

  [[noreturn]] void fail(const TemplateToken& token, const std::string& message) const {
    throw_template_error(result_->name, token.position, message);
  }

  bool at_symbol(std::string_view symbol) const {
    return peek().kind == Kind::kSymbol && peek().text == symbol;
  }
  bool at_word(std::string_view word) const { return peek().kind == Kind::kName && peek().text == word; }

  bool accept_symbol(std::string_view symbol) {
    if (!at_symbol(symbol)) return false;
    take();
    return true;
  }

  void expect(Kind kind, const std::string& expected) {
    if (peek().kind != kind) fail(peek(), "expected " + expected + ", found " + describe(peek()));
    take();
  }

  void end_tag() { expect(Kind::kTagEnd, "'%}'"); }

  /// Counts open constructs, so that a hostile template ends in an error and not in a stack overflow.
  struct Nesting {
    explicit Nesting(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kMaxNesting) parser_.fail(parser_.peek(), "nested too deeply");
    }
    ~Nesting() { --parser_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    Parser& parser_;
  };

  /// Nodes up to the end or up to a tag that is not a statement of its own (`endif`, `else`, ...):
  /// that tag stays.
  TemplateBody parse_body() {
    const Nesting nesting(*this);
    TemplateBody body;
    while (true) {
      const TemplateToken& token = peek();
      if (token.kind == Kind::kText) {
        body.push_back({token.position, TemplateText{token.text}});
        take();
      } else if (token.kind == Kind::kOutputBegin) {
        body.push_back(parse_output());
      } else if (token.kind == Kind::kTagBegin && begins_statement(tokens_[next_ + 1])) {
        body.push_back(parse_statement());
      } else {
        return body;
      }
    }
  }

  static bool begins_statement(const TemplateToken& word) {
    return word.kind != Kind::kName ||
           (word.text != "elif" && word.text != "else" && word.text != "endif" && word.text != "endfor");
  }

  TemplateNode parse_output() {
    const TemplatePosition position = peek().position;
    TemplateOutput output;
    output.indentation = take().text;
    output.value = parse_expression();
    expect(Kind::kOutputEnd, "'}}'");
    const bool indents = output.value.kind == Expression::Kind::kFilter && output.value.text == "indent";
    if (indents) output.indentation.clear();
    return {position, std::move(output)};
  }

  TemplateNode parse_statement() {
    const TemplatePosition position = take().position;
    const TemplateToken& word = peek();
    if (word.kind != Kind::kName) fail(word, "expected the name of a tag, found " + describe(word));
    take();
    if (word.text == "for") return {position, parse_for(position)};
    if (word.text == "if") return {position, parse_if(position)};
    if (word.text == "include") return {position, parse_include()};
    fail(word, "unknown tag '" + word.text + "'; there are for, if and include");
  }

  /// `{% word`, which must come next; `opener` is what it closes.
  void expect_closing(std::string_view word, std::string_view opener, TemplatePosition position) {
    if (peek().kind == Kind::kEnd) {
      throw_template_error(result_->name, position, "this '" + std::string(opener) + "' is never closed");
    }
    take();
    if (!at_word(word)) {
      const bool for_else = opener == "for" && (at_word("else") || at_word("elif"));
      fail(peek(), for_else ? "a for has no else; test the list's emptiness with a boolean"
                            : "expected '" + std::string(word) + "', found " + describe(peek()));
    }
    take();
    end_tag();
  }

  TemplateFor parse_for(TemplatePosition position) {
    TemplateFor loop;
    const TemplateToken& variable = peek();
    if (variable.kind != Kind::kName) fail(variable, "expected a loop variable, found " + describe(variable));
    if (is_reserved(variable.text)) fail(variable, "'" + variable.text + "' is reserved");
    loop.variable = take().text;
    if (!at_word("in")) fail(peek(), "expected 'in', found " + describe(peek()));
    take();
    loop.list = parse_expression();
    end_tag();
    loop.body = parse_body();
    expect_closing("endfor", "for", position);
    return loop;
  }

  TemplateIf parse_if(TemplatePosition position) {
    TemplateIf node;
    node.branches.emplace_back();
    node.branches.back().condition.push_back(parse_expression());
    end_tag();
    node.branches.back().body = parse_body();
    while (peek().kind == Kind::kTagBegin && tokens_[next_ + 1].kind == Kind::kName) {
      const std::string& word = tokens_[next_ + 1].text;
      if ((word != "elif" && word != "else") || node.branches.back().condition.empty()) break;
      next_ += 2;
      node.branches.emplace_back();
      if (word == "elif") node.branches.back().condition.push_back(parse_expression());
      end_tag();
      node.branches.back().body = parse_body();
    }
    expect_closing("endif", "if", position);
    return node;
  }

  TemplateInclude parse_include() {
    const TemplateToken& name = peek();
    expect(Kind::kString, "the name of a template as a string");
    end_tag();
    result_->includes.emplace_back(name.text, name.position);
    return {name.text};
  }

  Expression parse_expression() { return parse_chain("or", Expression::Kind::kOr); }

  /// Operands joined by `word`, as one flat node; `and` binds tighter than `or`.
  Expression parse_chain(std::string_view word, Expression::Kind kind) {
    const bool is_or = kind == Expression::Kind::kOr;
    auto parse_operand = [&] { return is_or ? parse_chain("and", Expression::Kind::kAnd) : parse_not(); };
    Expression first = parse_operand();
    if (!at_word(word)) return first;
    Expression chain;
    chain.kind = kind;
    chain.position = first.position;
    chain.text = word;
    chain.operands.push_back(std::move(first));
    while (at_word(word)) {
      take();
      chain.operands.push_back(parse_operand());
    }
    return chain;
  }

  Expression parse_not() {
    if (!at_word("not")) return parse_filtered();
    const Nesting nesting(*this);
    Expression negation;
    negation.kind = Expression::Kind::kNot;
    negation.position = take().position;
    negation.text = "not";
    negation.operands.push_back(parse_not());
    return negation;
  }

  Expression parse_filtered() {
    Expression value = parse_primary();
    int filters = 0;
    while (accept_symbol("|")) {
      if (++filters > kMaxNesting) fail(peek(), "too many filters");
      value = parse_filter(std::move(value));
    }
    return value;
  }

  Expression parse_filter(Expression input) {
    const TemplateToken& name = peek();
    expect(Kind::kName, "the name of a filter");
    Expression call;
    call.kind = Expression::Kind::kFilter;
    call.position = name.position;
    call.text = name.text;
    call.operands.push_back(std::move(input));
    if (accept_symbol("(") && !accept_symbol(")")) {
      do {
        call.operands.push_back(parse_expression());
      } while (accept_symbol(","));
      if (!accept_symbol(")")) fail(peek(), "expected ')', found " + describe(peek()));
    }
    const TemplateFilter* filter = find_template_filter(name.text);
    if (filter == nullptr) fail(name, "unknown filter '" + name.text + "'");
    const std::size_t arguments = call.operands.size() - 1;
    if (arguments < filter->min_arguments || arguments > filter->max_arguments) {
      fail(name, "wrong number of arguments for filter '" + name.text + "'");
    }
    return call;
  }

  Expression parse_primary() {
    const Nesting nesting(*this);
    const TemplateToken& token = peek();
    if (accept_symbol("(")) {
      Expression inner = parse_expression();
      if (!accept_symbol(")")) fail(peek(), "expected ')', found " + describe(peek()));
      return inner;
    }
    Expression primary;
    primary.position = token.position;
    if (token.kind == Kind::kString) {
      primary.kind = Expression::Kind::kString;
      primary.text = take().text;
    } else if (token.kind == Kind::kInteger) {
      primary.kind = Expression::Kind::kInteger;
      primary.integer = std::stoll(take().text);
    } else if (at_word("true") || at_word("false")) {
      primary.kind = Expression::Kind::kBoolean;
      primary.integer = take().text == "true" ? 1 : 0;
    } else if (token.kind == Kind::kName && (!is_reserved(token.text) || token.text == "loop")) {
      parse_dotted_name(primary);
    } else {
      fail(token, "expected a value, found " + describe(token));
    }
    return primary;
  }

  void parse_dotted_name(Expression& expression) {
    expression.kind = Expression::Kind::kName;
    expression.path.push_back(take().text);
    while (accept_symbol(".")) {
      const TemplateToken& member = peek();
      expect(Kind::kName, "the name of a member");
      expression.path.push_back(member.text);
    }
    for (const std::string& part : expression.path) {
      if (!expression.text.empty()) expression.text += '.';
      expression.text += part;
    }
  }

  std::vector<TemplateToken> tokens_;
  std::unique_ptr<Template> result_;
  std::size_t next_ = 0;
  int depth_ = 0;
};

}  // namespace

void throw_template_error(const std::string& name, TemplatePosition position, const std::string& message) {
  throw CompileError(ExitCode::kInternal, name + ":" + std::to_string(position.line) + ":" +
                                              std::to_string(position.column) + ": " + message);
}

std::unique_ptr<Template> parse_template(const std::string& name, const std::string& source) {
  return Parser(name, source).run();
}

}  // namespace gcompile
