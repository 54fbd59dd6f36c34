#include "charts/chart_accessible.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <QWidget>

namespace mr::ui {

namespace {

QAccessibleInterface* makeChart(const QString& className, QObject* object)
{
    auto* widget = qobject_cast<QWidget*>(object);
    if (widget == nullptr)
        return nullptr;
    if (className == QLatin1String("mr::ui::LineChart") ||
        className == QLatin1String("mr::ui::StallStrip") ||
        className == QLatin1String("mr::ui::StepTimelineChart"))
        return new QAccessibleWidget(widget, QAccessible::Chart);
    return nullptr;
}

} // namespace

void ChartAccessible::install()
{
    static const bool installed = [] {
        QAccessible::installFactory(makeChart);
        return true;
    }();
    static_cast<void>(installed);
}

} // namespace mr::ui
