// The words for what a run trains: the whole model, its blocks in turn, an adapter beside it, or
// some layers.
//
// Threads  Pure.

#pragma once

#include <millrace/planner.h>

#include <QCoreApplication>
#include <QString>

namespace mr::ui {

enum class Method { Everything, Blocks, Adapter, Nf4Adapter, Layers };

constexpr bool isAdapter(Method method) noexcept
{
    return method == Method::Adapter || method == Method::Nf4Adapter;
}

struct MethodWords {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::MethodWords)

public:
    static QString name(Method method);
    static QString help(Method method);
    // PlanReport::method of its plans.
    static const char* word(Method method);
    // Bytes and seconds where the method fits, or why it does not.
    static QString need(const PlanReport& plan);
    // How many parameters the run trains, of how many; empty: an earlier program's plan.
    static QString trained(const PlanReport& plan);
    // "adapter, rank 16", "QLoRA adapter, rank 16" or "layers 20-31".
    static QString adapter(qint64 rank, bool isNf4);
    static QString layers(const QString& names);
    // "one block at a time"
    static QString blocks();
};

} // namespace mr::ui
