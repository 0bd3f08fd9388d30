// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Draws the pictures of docs/algorithms.md from the plans themselves. From the top folder:
//   c++ -std=c++20 -Iinclude docs/pictures/draw_plans.cpp -o draw_plans && ./draw_plans docs/pictures

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <wring/algorithm.hpp>

using namespace wring;

namespace {

struct Arrow {
  int from, to;
  double start, end;  ///< rounds
  Step step;          ///< of the receiver
};
struct Dot {
  int rank;
  double time;
};
struct Drawing {
  std::vector<Arrow> arrows;
  std::vector<Dot> finishes;
  double end = 0;
};

/// A message takes one round; a rank starts one message per round.
Drawing arrange(const std::vector<Plan>& plans) {
  Drawing drawing;
  const std::size_t p = plans.size();
  std::map<std::pair<int, int>, std::deque<double>> on_the_way;  // start times
  std::vector<double> clock(p, 0), free(p, 0);
  std::vector<std::size_t> next(p, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < p; ++r)
      while (next[r] < plans[r].steps.size()) {
        const Step& s = plans[r].steps[next[r]];
        const int me = static_cast<int>(r);
        if (s.kind == Kind::send) {
          const double start = std::max(clock[r], free[r]);
          free[r] = start + 1;
          on_the_way[{me, s.peer}].push_back(start);
        } else if (s.kind == Kind::finish) {
          drawing.finishes.push_back({me, clock[r]});
        } else {
          auto& queue = on_the_way[{s.peer, me}];
          if (queue.empty()) break;
          const double start = std::max(queue.front(), clock[r]);  // shown when both are ready for it
          drawing.arrows.push_back({s.peer, me, start, start + 1, s});
          clock[r] = start + 1;
          queue.pop_front();
          drawing.end = std::max(drawing.end, clock[r]);
        }
        ++next[r];
        moved = true;
      }
  }
  return drawing;
}

constexpr double left = 74, top = 46, round_width = 104, row_height = 52, gap = 13;

double x_of(double time) { return left + 18 + time * round_width; }
double y_of(int rank) { return top + rank * row_height; }

std::string format(const char* pattern, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string blocks_of(const Step& s) {
  return s.last == s.first + 1 ? std::to_string(s.first)
                               : std::to_string(s.first) + "–" + std::to_string(s.last - 1);
}

const char* colour_of(const Step& s) { return s.kind == Kind::combine ? "#0072B2" : "#00805A"; }

struct Point {
  double x, y;
};

/// A part of the way along an arrow.
Point along(const Arrow& a, double part) {
  const double x1 = x_of(a.start) + gap, x2 = x_of(a.end) - gap, y1 = y_of(a.from), y2 = y_of(a.to);
  return {x1 + part * (x2 - x1), y1 + part * (y2 - y1)};
}

double distance(Point a, Point b) { return std::hypot(a.x - b.x, a.y - b.y); }

double distance(Point point, const Arrow& a) {
  double least = distance(point, along(a, 0));
  for (double part = 0; part <= 1; part += 0.02) least = std::min(least, distance(point, along(a, part)));
  return least;
}

/// Where the label of an arrow goes: of the places along it the first that is clear of other arrows and of the labels so far, or the
/// clearest.
Point label_place(const Arrow& a, const std::vector<Arrow>& arrows, const std::vector<Point>& labels) {
  constexpr double enough = 15;
  const double first = blocks_of(a.step).size() > 2 ? 0.22 : 0.15;  // the tail is seen
  Point best = along(a, first);
  double best_clear = -1;
  for (double part = first; part < 0.75 && best_clear < enough; part += 0.05) {
    const Point place = along(a, part);
    double clear = enough;
    for (const Arrow& other : arrows)
      if (&other != &a) clear = std::min(clear, distance(place, other));
    for (const Point& label : labels) clear = std::min(clear, 0.6 * distance(place, label));
    if (clear > best_clear) best = place, best_clear = clear;
  }
  return best;
}

std::string draw_line(const Arrow& a) {
  const Point tail = along(a, 0), tip = along(a, 1);
  return format("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='%s' stroke-width='1.8'%s "
                "marker-end='url(#%s)'/>\n",
                tail.x, tail.y, tip.x, tip.y, colour_of(a.step),
                a.step.wire == Wire::raw ? " stroke-dasharray='5 4'" : "",
                a.step.kind == Kind::combine ? "add" : "keep");
}

std::string draw_label(const Arrow& a, Point at) {
  const std::string label = blocks_of(a.step);
  const double half = 5.5 + 3.2 * static_cast<double>(a.step.last - a.step.first > 1 ? 3 : label.size() - 1);
  return format("<rect x='%.1f' y='%.1f' width='%.1f' height='14' rx='3' fill='white'/>\n", at.x - half,
                at.y - 7, 2 * half) +
         format("<text x='%.1f' y='%.1f' text-anchor='middle' fill='%s'>%s</text>\n", at.x, at.y + 4,
                colour_of(a.step), label.c_str());
}

/// Labels above all lines.
std::string draw_arrows(const std::vector<Arrow>& arrows) {
  std::string lines, texts;
  std::vector<Point> labels;
  for (const Arrow& a : arrows) {
    labels.push_back(label_place(a, arrows, labels));
    lines += draw_line(a), texts += draw_label(a, labels.back());
  }
  return lines + texts;
}

std::string draw_legend(double y, bool raw, bool finish) {
  std::string svg;
  double x = left + 18;
  const auto line = [&](const char* colour, const char* marker, const char* dash, const char* text,
                        double width) {
    svg += format("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='%s' stroke-width='1.8'%s "
                  "marker-end='url(#%s)'/>\n",
                  x, y, x + 28, y, colour, dash, marker);
    svg += format("<text x='%.1f' y='%.1f'>%s</text>\n", x + 36, y + 4, text);
    x += width;
  };
  if (finish) line("#0072B2", "add", "", "combine", 108);
  line("#00805A", "keep", "", "store", 92);
  if (raw) line("#555", "grey", " stroke-dasharray='5 4'", "raw", 82);
  if (finish) {
    svg += format("<circle cx='%.1f' cy='%.1f' r='5' fill='#D55E00'/>\n", x + 8, y);
    svg += format("<text x='%.1f' y='%.1f'>finish</text>\n", x + 20, y + 4);
  }
  return svg;
}

/// The picture of one task. `per_node` > 0 shades the nodes.
std::string draw(const std::vector<Plan>& plans, const std::string& title, int per_node) {
  const Drawing d = arrange(plans);
  const int p = static_cast<int>(plans.size());
  const double width = std::max(x_of(d.end) + 26, 440.0), height = y_of(p) + 22;
  std::uint64_t drawn = 0;
  for (const Plan& plan : plans) drawn = drawn * 31 + hash(plan);
  std::string svg =
      format("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %.0f %.0f' width='%.0f' height='%.0f' "
             "font-family='sans-serif' font-size='12'>\n<!-- plans %016llx -->\n",
             width, height, width, height, static_cast<unsigned long long>(drawn));
  svg += "<defs>";
  for (const auto& [name, colour] : {std::pair{"add", "#0072B2"}, {"keep", "#00805A"}, {"grey", "#555"}})
    svg += format("<marker id='%s' viewBox='0 0 10 10' refX='9' refY='5' markerWidth='7' markerHeight='7' "
                  "orient='auto'><path d='M0,0 L10,5 L0,10 z' fill='%s'/></marker>",
                  name, colour);
  svg += "</defs>\n<rect width='100%' height='100%' fill='white'/>\n";
  svg += format("<text x='14' y='20' font-size='13' font-weight='bold'>%s</text>\n", title.c_str());
  for (int n = 0; per_node > 0 && n < p / per_node; ++n)
    svg += format("<rect x='8' y='%.1f' width='%.1f' height='%.1f' rx='8' fill='#f1f1ee'/>\n",
                  y_of(n * per_node) - 18, width - 16, (per_node - 1) * row_height + 36);
  for (int r = 0; r < p; ++r) {
    svg += format("<text x='16' y='%.1f'>rank %d</text>\n", y_of(r) + 4, r);
    svg += format("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='#bbb'/>\n", left, y_of(r),
                  x_of(d.end) + 14, y_of(r));
  }
  for (int t = 0; t <= static_cast<int>(d.end); ++t)
    for (int r = 0; r < p; ++r)
      svg += format("<circle cx='%.1f' cy='%.1f' r='2.5' fill='#bbb'/>\n", x_of(t), y_of(r));
  svg += draw_arrows(d.arrows);
  const bool raw = std::ranges::any_of(d.arrows, [](const Arrow& a) { return a.step.wire == Wire::raw; });
  for (const Dot& f : d.finishes)
    svg += format("<circle cx='%.1f' cy='%.1f' r='5' fill='#D55E00'/>\n", x_of(f.time), y_of(f.rank));
  return svg + draw_legend(height - 24, raw, !d.finishes.empty()) + "</svg>\n";
}

template <Algorithm A>
void write(const std::string& folder, const std::string& file, const A& algorithm, int ranks,
           const std::string& title, int per_node = 0) {
  const std::string path = folder + "/" + file + ".svg";
  std::ofstream picture(path);
  picture << draw(plans_of(algorithm, {}, ranks), title, per_node);
  if (picture.flush()) return;
  std::fprintf(stderr, "draw_plans: cannot write %s\n", path.c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: draw_plans FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  write(folder, "ring", Ring{}, 4, "Ring: allreduce of 4 ranks, 4 blocks");
  write(folder, "direct", Direct{}, 4, "Direct: allreduce of 4 ranks, 4 blocks");
  write(folder, "recursive_doubling", RecursiveDoubling{}, 6,
        "RecursiveDoubling: allreduce of 6 ranks (folded to 4), 1 block");
  write(folder, "halving_doubling", HalvingDoubling{}, 4, "HalvingDoubling: allreduce of 4 ranks, 4 blocks");
  write(folder, "hierarchical", Hierarchical(3), 6,
        "Hierarchical(3): allreduce of 2 nodes of 3 ranks, 6 blocks", 3);
  return 0;
}
