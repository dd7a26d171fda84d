"""Loads a page in headless Chromium and lists the visible parts."""

import html
import json
import re
import shutil
import subprocess

PROGRAM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium"))), None)

# Boxes are in pixels of the window. `resources`: all that the page has asked for.
PROBE = """
<script>
const box = e => { const r = e.getBoundingClientRect();
  return [r.left, r.top, r.right, r.bottom]; };
const style = e => getComputedStyle(e);
const found = {
  width: innerWidth, page_width: document.documentElement.scrollWidth,
  title: document.title, background: style(document.body).backgroundColor,
  resources: performance.getEntriesByType('resource').map(e => e.name),
  headings: [...document.querySelectorAll('h2')].map(e => e.textContent),
  cells: [...document.querySelectorAll('tbody tr')].map(
    row => [...row.children].map(e => e.textContent)),
  figures: [...document.querySelectorAll('figure')].map(figure => ({
    caption: figure.querySelector('figcaption').textContent,
    box: box(figure),
    legend: [...figure.querySelectorAll('.legend li')].map(e => e.textContent),
    plot: [...figure.querySelectorAll('svg.plot')].map(box)[0],
    texts: [...figure.querySelectorAll('svg.plot text')].map(e => ({
      text: e.textContent, box: box(e), colour: style(e).fill,
      size: parseFloat(style(e).fontSize) * e.getScreenCTM().d || 12})),
    curves: [...figure.querySelectorAll('svg.plot path.curve')].map(e => ({
      name: e.textContent, box: box(e), length: e.getTotalLength(),
      points: (e.getAttribute('d').match(/[ML]/g) || []).length, colour: style(e).stroke})),
    bars: [...figure.querySelectorAll('svg.plot rect')].map(e => ({
      name: e.textContent, box: box(e), colour: style(e).fill})),
    dots: [...figure.querySelectorAll('svg.plot circle')].map(e => e.textContent),
  })),
};
const out = document.createElement('pre');
out.id = 'probe';
out.textContent = JSON.stringify(found);
document.body.replaceChildren(out);
</script>
"""


def command(profile, width, height, dark):
    """Runs without a sandbox: tests may run as root, in a container. No name is resolved."""
    return [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--hide-scrollbars", f"--user-data-dir={profile}", f"--window-size={width},{height}",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}"]


def look_at(page, width=1280, dark=False):
    """Returns the parts that the probe has found on a page."""
    probed = page.with_name(f"{page.stem}-probed.html")
    probed.write_text(page.read_text().replace("</body>", PROBE + "</body>"))
    done = subprocess.run([*command(page.parent / "profile", width, 2000, dark), "--dump-dom",
                           probed.as_uri()], capture_output=True, text=True, timeout=300)
    probed.unlink()
    text = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert text, done
    return json.loads(html.unescape(text[1]))


def take_picture(page, png, width=1280, height=2000, dark=False):
    """Makes a picture for people to look at."""
    subprocess.run([*command(page.parent / "profile", width, height, dark),
                    f"--screenshot={png}", page.as_uri()], check=True, timeout=300,
                   capture_output=True)
