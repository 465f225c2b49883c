#!/usr/bin/env python3
"""Looks at reports in a browser: writes pictures, and says what overflows or cannot be read.

    scripts/screenshots.py OUTPUT_DIR REPORT.html...

Each report is shown wide and narrow, light and dark: OUTPUT_DIR/NAME_wide_dark.png and so on, NAME being the folder or
the name of the file. In each of the four, text has to stay within its box and the page within the window, text has to
have 12 pixels and the contrast that WCAG 2.1 asks for (AA: 4.5, of large text 3). The browser is chromium, which
`scripts/install_packages.sh browser` installs. Exit: 0 nothing found, 1 found, 2 usage, 77 there is no chromium.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WINDOWS = {"wide": (1200, 2400), "narrow": (390, 2400)}
SCHEMES = {"light": 1, "dark": 0}
LIMIT_SECONDS = 120

# Runs in the page, behind its own script. What is inside of .wide is scrolled by itself.
LOOK = r"""
const findings = [];
const numbers = color => (color.match(/[\d.]+/g) || []).map(Number);
const luminance = color => {
  const [r, g, b] = numbers(color).map(c => c / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
};
const isOpaque = color => color !== 'transparent' && !(numbers(color).length === 4 && numbers(color)[3] === 0);
const behind = element => {
  for (let at = element; at; at = at.parentElement) {
    const tile = at.tagName === 'g' && at.querySelector('rect.tile');
    if (tile) return getComputedStyle(tile).fill;
    if (isOpaque(getComputedStyle(at).backgroundColor)) return getComputedStyle(at).backgroundColor;
  }
  return 'rgb(255, 255, 255)';
};
const say = (what, element) => findings.push(what + ': ' + element.tagName + ' "' + element.textContent.trim().slice(0, 60) + '"');
for (const part of document.querySelectorAll('details')) part.open = true;
if (document.documentElement.scrollWidth > innerWidth) findings.push('the page is ' + document.documentElement.scrollWidth + ' wide');
let texts = 0;
for (const element of document.body.querySelectorAll('*')) {
  const box = element.getBoundingClientRect();
  if (!box.width || !box.height || element.closest('script')) continue;
  if (!element.closest('.wide') && box.right > innerWidth + 1) say('beyond the window', element);
  const isSvg = element instanceof SVGElement;
  if (!isSvg && !element.matches('.wide') && getComputedStyle(element).display !== 'inline' &&
      element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0) say('wider than its box', element);
  if (![...element.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
  if (element.tagName === 'title') continue;
  ++texts;
  const style = getComputedStyle(element);
  const isLong = element.textContent.trim().length > 8 && style.whiteSpace !== 'nowrap';
  if (element.matches('td') && isLong && box.width < 90) say('a column of a few letters', element);
  if (isSvg) {
    const frame = (element.parentElement.querySelector(':scope > rect.tile') || element.closest('svg')).getBoundingClientRect();
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1) say('text leaves its picture', element);
  }
  const size = parseFloat(style.fontSize);
  if (size < 12) say('text of ' + size + ' pixels', element);
  const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  const ratio = contrast(isSvg ? style.fill : style.color, behind(element));
  if (ratio < (isLarge ? 3 : 4.5)) say('contrast of ' + ratio.toFixed(2), element);
}
document.body.innerHTML = '';
document.body.append(Object.assign(document.createElement('pre'), {id: 'findings', textContent: JSON.stringify({texts, findings})}));
"""


def browser():
    return next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


def run(chromium, scheme, window, page, profile, *flags):
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}",
               f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
               f"--window-size={WINDOWS[window][0]},{WINDOWS[window][1]}", *flags, page.resolve().as_uri()]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=LIMIT_SECONDS)


def look(chromium, scheme, window, report, folder):
    """What is wrong with the page, a list of sentences."""
    page = folder / "looked_at.html"
    page.write_text(report.read_text(encoding="utf-8").replace("</body>", f"<script>{LOOK}</script></body>"), encoding="utf-8")
    done = run(chromium, scheme, window, page, folder, "--dump-dom")
    found = re.search(r'<pre id="findings">(.*?)</pre>', done.stdout, re.DOTALL)
    if not found:
        return [f"the page's script did not end: {done.stderr[-500:]}"]
    answer = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    return answer["findings"] if answer["texts"] else ["the page has no text"]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    chromium = browser()
    if chromium is None:
        print("screenshots: there is no chromium here; scripts/install_packages.sh browser installs it")
        return 77
    output = pathlib.Path(sys.argv[1])
    output.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for path in sys.argv[2:]:
            report = pathlib.Path(path)
            name = report.resolve().parent.name if report.name == "report.html" else report.stem
            for window in WINDOWS:
                for scheme in SCHEMES:
                    picture = output / f"{name}_{window}_{scheme}.png"
                    run(chromium, scheme, window, report, folder, f"--screenshot={picture.resolve()}")
                    findings = look(chromium, scheme, window, report, folder)
                    if not picture.is_file():
                        findings.append("no picture was written")
                    wrong += len(findings)
                    print(f"{picture.name}: {'; '.join(findings[:10]) if findings else 'nothing overflows, all can be read'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
