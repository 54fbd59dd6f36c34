#include "charts/x_axis.h"

#include "text/units.h"

#include <QCoreApplication>

#include <cmath>

namespace mr::ui {

namespace {

struct AxisWords {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::XAxis)
};

} // namespace

QByteArray XAxis::column() const
{
    return kind == Kind::Step ? "step" : "time_s";
}

QString XAxis::position(double x) const
{
    return kind == Kind::Step ? AxisWords::tr("step %1").arg(countText(std::llround(x)))
                              : durationText(x);
}

QString XAxis::summary(const QString& name, qsizetype count, const QString& last,
    const QString& lowest, double lowestAt) const
{
    const QString sentence = kind == Kind::Step
                                 ? AxisWords::tr("%1: %2 points, last %3, lowest %4 at step %5.")
                                 : AxisWords::tr("%1: %2 points, last %3, lowest %4 after %5.");
    return sentence.arg(name, countText(count), last, lowest,
        kind == Kind::Step ? countText(std::llround(lowestAt)) : durationText(lowestAt));
}

QString XAxis::timeFormat(double upper)
{
    constexpr double kHour = 3600.0;
    return upper <= kHour ? QStringLiteral("%m:%s") : QStringLiteral("%h:%m:%s");
}

} // namespace mr::ui
