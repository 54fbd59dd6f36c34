// A built step. Tests remove or exchange its parts and check it again.

#pragma once

#include "core/plan/memory_plan.h"
#include "core/plan/plan_text.h"
#include "tests/core/plan/plan_shapes.h"

#include <QTest>

#include <string>
#include <utility>

namespace mr::test {

// A step to be broken: two blocks, three micro-batches, after step 6.
struct Bench {
    ModelShape shape = smallShape(2);
    OffloadPolicy policy = policyOf("zero-offload");
    Budget budget = endless();
    Carry in = carryOf(6);
    Precision precision = Precision::BF16;
    BuiltStep built;

    void build(int microBatches = 3, double clipNorm = 1.0)
    {
        StepSpec spec = specOf(in.step + 1, microBatches);
        spec.precision = precision;
        spec.clipNorm = clipNorm;
        Result<BuiltStep> made = buildPlan(spec, in, shape, budget, {}, policy);
        QVERIFY2(made.ok(), made.status().message().c_str());
        built = std::move(made).value();
    }

    StepPlan& plan() { return built.plan; }

    Status check() const { return checkPlan(built.plan, in, built.out, shape, budget, policy); }

    // The `nth` task of a kind.
    Task& find(TaskKind kind, int nth = 0)
    {
        for (Task& task : built.plan.tasks) {
            if (task.kind == kind && nth-- == 0)
                return task;
        }
        qFatal("no such task");
    }

    void erase(TaskKind kind, int nth = 0)
    {
        const auto index = static_cast<TaskIndex>(&find(kind, nth) - built.plan.tasks.data());
        built.plan.tasks.erase(built.plan.tasks.begin() + index);
        // Waits for it name the task before it now, and tasks behind it move up.
        for (Wait& wait : built.plan.waits) {
            if (!wait.isCarried() && wait.index() >= index && wait.index() > 0)
                wait = Wait::onTask(wait.index() - 1);
        }
    }
};

// Removes wait `nth` of a task; the wait stays in the plan and no task names it.
inline void dropWait(StepPlan& plan, Task& task, std::uint32_t nth)
{
    std::swap(plan.waits[task.firstWait], plan.waits[task.firstWait + nth]);
    task.firstWait += 1;
    task.waitCount -= 1;
}

// Moves a task and its waits. Tasks in between keep their order, and waits follow their tasks.
inline void moveTask(StepPlan& plan, TaskIndex from, TaskIndex to)
{
    const Task moved = plan.tasks[from];
    plan.tasks.erase(plan.tasks.begin() + from);
    plan.tasks.insert(plan.tasks.begin() + to, moved);
    for (Wait& wait : plan.waits) {
        if (wait.isCarried())
            continue;
        const TaskIndex old = wait.index();
        TaskIndex now = old == from ? to : old;
        if (old > from && old <= to)
            now = old - 1;
        if (old < from && old >= to)
            now = old + 1;
        wait = Wait::onTask(now);
    }
}

// Tasks that `isMeant` accepts and that have a wait whose removal breaks no rule; as text, a line a
// wait.
template <typename IsMeant>
std::string needlessWaits(Bench& bench, IsMeant isMeant)
{
    std::string needless;
    for (TaskIndex i = 0; i < bench.plan().tasks.size(); ++i) {
        const Task whole = bench.plan().tasks[i];
        if (!isMeant(whole))
            continue;
        for (std::uint32_t nth = 0; nth < whole.waitCount; ++nth) {
            const std::string line = toText(bench.plan(), i) + "\n";
            dropWait(bench.plan(), bench.plan().tasks[i], nth);
            if (bench.check().ok())
                needless += line;
            bench.plan().tasks[i] = whole;
        }
    }
    return needless;
}

inline MemoryPlan memoryOf(const Bench& bench, int microBatches = 3)
{
    StepSpec spec = specOf(1, microBatches);
    spec.precision = bench.precision;
    Result<MemoryPlan> memory = planMemory(spec, bench.shape, bench.budget, {}, bench.policy);
    return memory.ok() ? std::move(memory).value() : MemoryPlan{};
}

} // namespace mr::test

// The bench's plan breaks the rule of this name.
#define BREAKS(bench, rule)                                                                        \
    do {                                                                                           \
        const Status status = (bench).check();                                                     \
        QVERIFY(!status.ok());                                                                     \
        QVERIFY2(status.message().find(rule) != std::string::npos, status.message().c_str());      \
    } while (false)
