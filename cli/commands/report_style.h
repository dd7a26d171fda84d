// The style of a report's page, light and dark. Hues of c0 .. c7 stay apart for people who do not
// see red and green apart.
#pragma once

namespace plait::cli {

inline constexpr const char* kReportStyle = R"css(
:root { color-scheme: light dark;
  --page: #f6f7f9; --surface: #ffffff; --text: #1d2430; --muted: #5b6575; --grid: #e3e7ed;
  --border: #d9dee6; --on: #ffffff; --cell: #14509e;
  --c0: #1f6fc4; --c1: #d9720a; --c2: #0c8f74; --c3: #b0409a; --c4: #8a7300; --c5: #5a54c9;
  --c6: #c23b3b; --c7: #5c6b7a; }
@media (prefers-color-scheme: dark) { :root {
  --page: #12161c; --surface: #1b212a; --text: #e6eaf0; --muted: #9aa5b4; --grid: #2c343f;
  --border: #323b48; --on: #0d1117; --cell: #7fb8ff;
  --c0: #5fa8f5; --c1: #f2a14b; --c2: #45c9a9; --c3: #e08ad0; --c4: #d3bd4a; --c5: #a39ff5;
  --c6: #f08080; --c7: #a3b1c0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 20px 16px 40px; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 1.8rem 0 .6rem; }
p { margin: 0 0 .8rem; color: var(--muted); max-width: 75ch; overflow-wrap: anywhere; }
.figures { display: grid; gap: 14px;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 420px), 1fr)); align-items: start; }
figure, .table { margin: 0; padding: 12px 12px 8px; background: var(--surface);
  border: 1px solid var(--border); border-radius: 8px; }
figcaption { font-weight: 600; margin-bottom: .3rem; overflow-wrap: anywhere; }
.legend { display: flex; flex-wrap: wrap; gap: 0 16px; list-style: none; margin: 0 0 .3rem;
  padding: 0; font-size: 13px; color: var(--muted); }
.legend li { display: flex; align-items: center; gap: 6px; overflow-wrap: anywhere; }
.legend svg { flex: none; }
.table { overflow-x: auto; padding: 4px 12px; width: fit-content; max-width: 100%; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 4px 28px 4px 0; border-bottom: 1px solid var(--grid);
  font-weight: 400; white-space: nowrap; }
tbody th { color: var(--muted); }
thead th { font-weight: 600; }
tr:last-child > * { border-bottom: 0; }
svg.plot { display: block; width: 100%; max-width: 620px; height: auto; overflow: visible; }
svg text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--muted); }
svg text.title { fill: var(--text); }
svg text.small { font-size: 10px; }
svg text.middle { text-anchor: middle; }
svg text.end { text-anchor: end; }
svg text.on { fill: var(--on); }
.grid { stroke: var(--grid); }
.axis { stroke: var(--muted); }
.curve { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.dashed { stroke-dasharray: 2 5; }
.cell { fill: var(--cell); stroke: var(--border); stroke-width: .5; }
.own { stroke-dasharray: 2 2; }
.c0 { stroke: var(--c0); } .c0.fill { fill: var(--c0); }
.c1 { stroke: var(--c1); } .c1.fill { fill: var(--c1); }
.c2 { stroke: var(--c2); } .c2.fill { fill: var(--c2); }
.c3 { stroke: var(--c3); } .c3.fill { fill: var(--c3); }
.c4 { stroke: var(--c4); } .c4.fill { fill: var(--c4); }
.c5 { stroke: var(--c5); } .c5.fill { fill: var(--c5); }
.c6 { stroke: var(--c6); } .c6.fill { fill: var(--c6); }
.c7 { stroke: var(--c7); } .c7.fill { fill: var(--c7); }
.fill { stroke: var(--surface); stroke-width: .5; }
)css";

}  // namespace plait::cli
