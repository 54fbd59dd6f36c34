// The arithmetic of line charts: smoothing and decimation, without a widget.
//
// Order  Smoothing runs over all points, before any decimation: the past never changes when new
//        points arrive, and the smoothed values do not depend on the width of the window.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace mr::ui {

// Points of one series; x ascends. NaN in y is a gap.
struct Column {
    std::vector<double> x;
    std::vector<double> y;

    std::size_t size() const noexcept { return x.size(); }
    void clear();
};

// Debiased exponential moving average: sum of (1-a)^k v over the sum of (1-a)^k, a = 2/(window+1).
// Written as a correction of the last value, so a constant stays exactly constant and the first
// value is itself.
class Ema
{
public:
    // `window` in points, at least 1; 1 is no smoothing.
    explicit Ema(double window);

    // A value that is not finite leaves a gap and is not remembered.
    double push(double value);

private:
    double m_alpha;
    double m_value = 0.0;
    double m_weight = 0.0; // 1 - (1-a)^n: weight of the n values so far
};

std::vector<double> debiasedEma(std::span<const double> values, double window);

enum class Scale { Linear, Log };

// Drawn points of a Column: at most two for each pixel column (its minimum and maximum, in the
// order in which they came) and a NaN where the line has a gap.
struct DrawnPoints {
    std::vector<double> x;
    std::vector<double> y;
    std::vector<double> gaps; // x of values that are not numbers, one for each pixel column at most
    double low = 0.0;         // low, high: of the finite values in range; low > high: no value
    double high = -1.0;
    std::size_t hidden = 0; // not above zero, on a log scale
};

// Points with lower <= x <= upper and one neighbour on each side, so the line reaches the edge.
// `columns` is the width in device pixels.
DrawnPoints decimate(const Column& column, double lower, double upper, int columns, Scale scale);

// Distance of axis labels: the smallest 1, 2 or 5 times a power of ten that is not below `value`; 1
// for value <= 0.
double niceStep(double value);
// Top of an axis: finer than niceStep(), so that little room is lost above the highest bar.
double niceCeiling(double value);

} // namespace mr::ui
