// Horizontal axis of a LineChart, in words: steps or time.
//
// Threads  GUI.
// Units    Optimizer steps, or seconds of active time since the run began.

#pragma once

#include <QByteArray>
#include <QString>

namespace mr::ui {

struct XAxis {
    enum class Kind { Step, Time };

    Kind kind = Kind::Step;
    double grid = 1.0; // distance of neighbouring points

    QByteArray column() const; // name in a CSV file
    // "step 12", "3 min 07 s"
    QString position(double x) const;
    // A sentence for screen readers: name, count, last and lowest value, and where that was.
    QString summary(const QString& name, qsizetype count, const QString& last,
        const QString& lowest, double lowestAt) const;
    // Format of the labels, in the words of QCPAxisTickerTime, for a chart that ends at `upper`.
    static QString timeFormat(double upper);
};

} // namespace mr::ui
