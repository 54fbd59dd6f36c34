#include "math/series_math.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mr::ui {

namespace {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

// One pixel column while its points are read.
struct Bucket {
    double lowX = 0.0;
    double highX = 0.0;
    double low = 0.0;
    double high = 0.0;
    bool any = false;
    bool gapBefore = false;
    bool gapAfter = false;
    double gapX = 0.0;

    void add(double x, double y)
    {
        if (!any || y < low) {
            low = y;
            lowX = x;
        }
        if (!any || y > high) {
            high = y;
            highX = x;
        }
        any = true;
    }

    void addGap(double x)
    {
        (any ? gapAfter : gapBefore) = true;
        gapX = x;
    }
};

class Decimator
{
public:
    explicit Decimator(DrawnPoints& out)
        : m_out(out)
    {
    }

    void flush(const Bucket& bucket)
    {
        if (bucket.gapBefore)
            gap(bucket.gapX);
        if (bucket.any) {
            const bool lowFirst = bucket.lowX <= bucket.highX;
            point(lowFirst ? bucket.lowX : bucket.highX, lowFirst ? bucket.low : bucket.high);
            if (bucket.lowX != bucket.highX)
                point(lowFirst ? bucket.highX : bucket.lowX, lowFirst ? bucket.high : bucket.low);
        }
        if (bucket.gapAfter)
            gap(bucket.gapX);
        if (bucket.gapBefore || bucket.gapAfter)
            m_out.gaps.push_back(bucket.gapX);
    }

private:
    void point(double x, double y)
    {
        m_out.x.push_back(x);
        m_out.y.push_back(y);
    }

    void gap(double x)
    {
        if (!m_out.y.empty() && !std::isnan(m_out.y.back()))
            point(x, kGap);
    }

    DrawnPoints& m_out;
};

bool shown(double y, Scale scale)
{
    return std::isfinite(y) && (scale == Scale::Linear || y > 0.0);
}

} // namespace

void Column::clear()
{
    x.clear();
    y.clear();
}

Ema::Ema(double window)
    : m_alpha(2.0 / (std::max(window, 1.0) + 1.0))
{
}

double Ema::push(double value)
{
    if (!std::isfinite(value))
        return kGap;
    m_weight = m_weight * (1.0 - m_alpha) + m_alpha; // the first time exactly alpha
    m_value += (value - m_value) * (m_alpha / m_weight);
    return m_value;
}

std::vector<double> debiasedEma(std::span<const double> values, double window)
{
    Ema ema(window);
    std::vector<double> smoothed;
    smoothed.reserve(values.size());
    for (const double value : values)
        smoothed.push_back(ema.push(value));
    return smoothed;
}

DrawnPoints decimate(const Column& column, double lower, double upper, int columns, Scale scale)
{
    DrawnPoints out;
    if (column.x.empty() || columns < 1 || !(upper >= lower))
        return out;
    const auto begin = column.x.begin();
    auto first = std::lower_bound(begin, column.x.end(), lower) - begin;
    auto last = std::upper_bound(begin, column.x.end(), upper) - begin;
    first = std::max<std::ptrdiff_t>(first - 1, 0);
    last = std::min<std::ptrdiff_t>(last + 1, std::ssize(column.x));

    // Few points are kept as they are: buckets would only move the gaps.
    const bool exact = last - first <= 2 * static_cast<std::ptrdiff_t>(columns);
    const double perColumn = upper > lower ? columns / (upper - lower) : 0.0;
    Decimator decimator(out);
    Bucket bucket;
    double current = -2.0;
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (std::ptrdiff_t i = first; i < last; ++i) {
        const double x = column.x[static_cast<std::size_t>(i)];
        const double y = column.y[static_cast<std::size_t>(i)];
        const double at = exact ? static_cast<double>(i) : std::floor((x - lower) * perColumn);
        if (at != current) {
            decimator.flush(bucket);
            bucket = {};
            current = at;
        }
        if (!shown(y, scale)) {
            out.hidden += std::isfinite(y) ? 1 : 0;
            bucket.addGap(x);
            continue;
        }
        bucket.add(x, y);
        low = std::min(low, y);
        high = std::max(high, y);
    }
    decimator.flush(bucket);
    if (low <= high) {
        out.low = low;
        out.high = high;
    }
    return out;
}

double niceStep(double value)
{
    if (!(value > 0.0) || !std::isfinite(value))
        return 1.0;
    const double power = std::pow(10.0, std::floor(std::log10(value)));
    for (const double step : {1.0, 2.0, 5.0}) {
        if (step * power >= value * (1.0 - 1e-12))
            return step * power;
    }
    return 10.0 * power;
}

double niceCeiling(double value)
{
    if (!(value > 0.0) || !std::isfinite(value))
        return 1.0;
    const double power = std::pow(10.0, std::floor(std::log10(value)));
    for (const double step : {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0}) {
        if (step * power >= value * (1.0 - 1e-12))
            return step * power;
    }
    return 10.0 * power;
}

} // namespace mr::ui
