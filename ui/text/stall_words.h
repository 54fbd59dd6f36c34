// The words for the parts of a step's time: compute, then the six causes of waiting.

#pragma once

#include <millrace/run_reader.h>

#include <QCoreApplication>
#include <QString>

#include <cstddef>

namespace mr::ui {

struct StallWords {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::StallWords)

public:
    // `part` 0 is compute, 1 + n is StallCause n.
    static QString name(std::size_t part);
    // One sentence: the device computed, or the work that it waited for.
    static QString explanation(std::size_t part);
    // Work of a run between its steps, and a sentence about it.
    static QString name(IntervalKind kind);
    static QString explanation(IntervalKind kind);
};

} // namespace mr::ui
