#include "cli/svg/plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/svg/draw.h"

namespace plait::cli {
namespace {

std::string figure(const std::string& title, const std::string& legend, const std::string& body) {
  return fmt::format("<figure>\n<figcaption>{}</figcaption>\n{}{}</figure>\n", escape_html(title),
                     legend, body);
}

std::string in_svg(const std::string& title, double height, const Svg& svg) {
  return fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
      kPlotWidth, height, escape_html(title), svg.out);
}

std::string legend_of(const std::vector<std::pair<std::string, std::string>>& keys) {
  if (keys.size() < 2) return "";
  std::string out = "<ul class=\"legend\">\n";
  for (const auto& [key, name] : keys)
    out +=
        fmt::format("<li><svg viewBox=\"0 0 24 10\" width=\"24\" height=\"10\">{}</svg>{}</li>\n",
                    key, escape_html(name));
  return out + "</ul>\n";
}

void draw_y_axis(Svg& svg, const Frame& frame, const Axis& axis, const std::string& title) {
  for (const double tick : axis.ticks) {
    const double y = frame.y(axis.place(tick));
    svg.line("grid", frame.left, y, frame.right, y);
    svg.text(frame.left - 6, y + 4, "end", axis.text(tick));
  }
  svg.upright_title((frame.top + frame.bottom) / 2, title);
}

// --- curves ---

// Returns the values that are drawn: the lowest and the highest of those that share a place on the
// screen, so that no peak is lost, and the last value. Sorted; -1 stands for a gap.
std::vector<int> drawn_points(const std::vector<double>& values) {
  constexpr int kBuckets = 300;
  const int count = static_cast<int>(values.size());
  const int stride = std::max(1, (count + kBuckets - 1) / kBuckets);
  std::vector<int> points;
  for (int begin = 0; begin < count; begin += stride) {
    int low = -1, high = -1;
    for (int i = begin; i < std::min(begin + stride, count); ++i) {
      const double value = values[static_cast<std::size_t>(i)];
      if (!std::isfinite(value)) continue;
      if (low < 0 || value < values[static_cast<std::size_t>(low)]) low = i;
      if (high < 0 || value > values[static_cast<std::size_t>(high)]) high = i;
    }
    points.push_back(std::min(low, high));
    if (low != high) points.push_back(std::max(low, high));
  }
  if (!points.empty() && points.back() >= 0 && points.back() != count - 1 &&
      std::isfinite(values.back()))
    points.push_back(count - 1);
  return points;
}

struct Axes {
  Axis x, y;
  std::string x_title;
};

void draw_curve(Svg& svg, const Frame& frame, const Axes& axes, const Curve& curve) {
  const auto value_at = [&](int i) { return curve.values[static_cast<std::size_t>(i)]; };
  const auto dot = [&](int i, double radius) {
    svg.add(
        R"(<circle class="c{} fill" cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}, {} {}: {}</title></circle>)",
        curve.colour, frame.x(axes.x.place(i)), frame.y(axes.y.place(value_at(i))), radius,
        escape_html(curve.name), axes.x_title, i, significant(value_at(i), 4));
  };
  std::string path;
  int last = -1;
  std::size_t length = 0;  // of the piece under way
  const auto end_piece = [&] {
    if (length == 1) dot(last, 2.5);
    length = 0;
  };
  for (const int i : drawn_points(curve.values)) {
    if (i < 0) {
      end_piece();
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", length == 0 ? "M" : "L", frame.x(axes.x.place(i)),
                        frame.y(axes.y.place(value_at(i))));
    last = i;
    ++length;
  }
  end_piece();
  svg.add(R"(<path class="curve c{}{}" d="{}"><title>{}</title></path>)", curve.colour,
          curve.dashed ? " dashed" : "", path, escape_html(curve.name));
  if (curve.marked >= 0 && std::isfinite(value_at(curve.marked))) dot(curve.marked, 4);
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  std::size_t length = 0;  // of the longest curve
};

Range range_of(const std::vector<Curve>& curves) {
  Range range;
  for (const Curve& curve : curves) {
    range.length = std::max(range.length, curve.values.size());
    for (const double value : curve.values)
      if (std::isfinite(value)) {
        range.low = std::min(range.low, value);
        range.high = std::max(range.high, value);
      }
  }
  return range;
}

}  // namespace

std::string escape_html(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string draw_curves(const CurvePlot& plot) {
  const Range range = range_of(plot.curves);
  if (!std::isfinite(range.low))
    return figure(plot.title, "", "<p class=\"none\">No value is finite.</p>\n");
  const bool wide = range.low > 0 && range.high > 50 * range.low;
  const Axes axes{
      linear_axis(0, static_cast<double>(range.length) - 1, 6, true),
      wide ? log_axis(range.low / 1.1, range.high * 1.1) : linear_axis(range.low, range.high, 6),
      plot.x_title};
  constexpr double kHeight = 270;
  const Frame frame{62, 10, kPlotWidth - 16, kHeight - 44};
  Svg svg;
  draw_y_axis(svg, frame, axes.y, plot.y_title + (wide ? " (logarithmic)" : ""));
  draw_x_axis(svg, frame, axes.x, plot.x_title);
  std::vector<std::pair<std::string, std::string>> keys;
  for (const Curve& curve : plot.curves) {
    draw_curve(svg, frame, axes, curve);
    keys.emplace_back(fmt::format(R"(<path class="curve c{}{}" d="M1 5L23 5"/>)", curve.colour,
                                  curve.dashed ? " dashed" : ""),
                      curve.name);
  }
  return figure(plot.title, legend_of(keys), in_svg(plot.title, kHeight, svg));
}

// --- bars ---

std::string draw_bars(const BarPlot& plot) {
  const std::size_t count = plot.parts.front().values.size();
  std::vector<double> totals(count);
  for (const BarPart& part : plot.parts)
    for (std::size_t b = 0; b < count; ++b) totals[b] += part.values[b];
  const double pitch = count <= 8 ? 26 : count <= 24 ? 19 : 14;
  const double thick = pitch - (count <= 24 ? 5 : 3);
  const char* const label = count <= 24 ? "end" : "end small";
  const Frame frame{58, 6, kPlotWidth - 56, 12 + static_cast<double>(count) * pitch};
  const Axis axis = linear_axis(0, std::ranges::max(totals) / plot.unit.size, 5);
  Svg svg;
  draw_x_axis(svg, frame, axis, plot.x_title);
  for (std::size_t b = 0; b < count; ++b) {
    const double y = frame.top + 3 + static_cast<double>(b) * pitch;
    svg.text(frame.left - 6, y + thick / 2 + 4, label, fmt::format("{} {}", plot.bar, b));
    double x = frame.left;
    for (std::size_t p = 0; p < plot.parts.size(); ++p) {
      const double value = plot.parts[p].values[b] / plot.unit.size;
      const double width = frame.x(axis.place(value)) - frame.left;
      if (width <= 0) continue;
      svg.add(
          R"(<rect class="c{} fill" x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{:.1f}"><title>{} {}, {}: {} {}</title></rect>)",
          plot.parts[p].colour, x, y, width, thick, plot.bar, b, escape_html(plot.parts[p].name),
          significant(value), plot.unit.name);
      x += width;
    }
    svg.text(x + 5, y + thick / 2 + 4, count <= 24 ? "" : "small",
             significant(totals[b] / plot.unit.size));
  }
  std::vector<std::pair<std::string, std::string>> keys;
  for (const BarPart& part : plot.parts)
    keys.emplace_back(
        fmt::format(R"(<rect class="c{} fill" x="5" width="14" height="10"/>)", part.colour),
        part.name);
  return figure(plot.title, legend_of(keys), in_svg(plot.title, frame.bottom + 42, svg));
}

// --- a matrix ---

namespace {

double largest_of(const std::vector<std::vector<double>>& rows) {
  double largest = 0;
  for (const auto& row : rows)
    for (const double value : row) largest = std::max(largest, value);
  return largest;
}

void draw_cell(Svg& svg, const MatrixPlot& plot, std::size_t r, std::size_t c, double share,
               const Frame& cell) {
  const std::string value = significant(plot.rows[r][c] / plot.unit.size);
  const double size = cell.right - cell.left;
  svg.add(
      R"(<rect class="{}" x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" fill-opacity="{:.3f}"><title>{} {}, {} {}: {} {}</title></rect>)",
      r == c ? "cell own" : "cell", cell.left, cell.top, size, size,
      share > 0 ? 0.08 + 0.92 * share : 0, plot.row_title, r, plot.column_title, c, value,
      plot.unit.name);
  if (size >= 30 && share > 0)
    svg.text((cell.left + cell.right) / 2, (cell.top + cell.bottom) / 2 + 4,
             share > 0.5 ? "middle small on" : "middle small", value);
}

// The legend of the darkness of cells.
void draw_ramp(Svg& svg, double left, double y, const std::string& largest) {
  constexpr int kSteps = 10;
  svg.text(left, y + 10, "small", "0");
  for (int s = 0; s < kSteps; ++s)
    svg.add(
        R"(<rect class="cell" x="{:.1f}" y="{:.1f}" width="12" height="12" fill-opacity="{:.2f}"/>)",
        left + 12 + 12 * s, y, (s + 0.5) / kSteps);
  svg.text(left + 16 + 12 * kSteps, y + 10, "small", largest);
}

}  // namespace

std::string draw_matrix(const MatrixPlot& plot) {
  const std::size_t count = plot.rows.size();
  const double left = 62, top = 40, largest = largest_of(plot.rows);
  const double size = std::min(44.0, (kPlotWidth - left - 16) / static_cast<double>(count));
  const auto stride = static_cast<std::size_t>(std::ceil(18 / size));
  const double end = size * static_cast<double>(count);
  Svg svg;
  svg.text(left + end / 2, 12, count < 3 ? "title" : "middle title", plot.column_title);
  svg.upright_title(std::max(top + end / 2, 60.0), plot.row_title);
  for (std::size_t r = 0; r < count; ++r) {
    const double at = size * static_cast<double>(r);
    if (r % stride == 0) {
      svg.text(left - 6, top + at + size / 2 + 4, "end small", std::to_string(r));
      svg.text(left + at + size / 2, top - 6, "middle small", std::to_string(r));
    }
    for (std::size_t c = 0; c < count; ++c) {
      const double x = left + size * static_cast<double>(c), y = top + at;
      draw_cell(svg, plot, r, c, largest > 0 ? plot.rows[r][c] / largest : 0,
                {x, y, x + size, y + size});
    }
  }
  const double ramp = std::max(top + end, 110.0) + 14;
  draw_ramp(svg, left, ramp,
            fmt::format("{} {}", significant(largest / plot.unit.size), plot.unit.name));
  return figure(plot.title, "", in_svg(plot.title, ramp + 18, svg));
}

}  // namespace plait::cli
