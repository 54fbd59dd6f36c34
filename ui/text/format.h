// Numbers that only the planning pages show; models/units.h has those of runs.

#pragma once

#include <QCoreApplication>
#include <QString>

namespace mr::ui {

class Format
{
    Q_DECLARE_TR_FUNCTIONS(mr::ui::Format)

public:
    // "1,610,612,736 bytes", for tool tips.
    static QString exactBytes(quint64 count);
    // "260 K", "1.10 B": parameters and tokens; the exact number below 10,000.
    static QString shortCount(qint64 value);
    static QString milliseconds(double ms); // "0.42 ms", "318 ms", "2.50 s"
};

} // namespace mr::ui
