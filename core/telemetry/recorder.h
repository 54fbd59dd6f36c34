// Recorder: from the engine's threads to the run store, without slowing anyone.
//
// Spans go through one ring per producing thread (4,096 each; a full ring drops and counts). Step
// records, scalars and messages have a queue of their own and are never dropped. The telemetry
// thread drains everything ten times a second, one transaction each, appends the same rows to the
// run folder (steps.jsonl, events.jsonl, samples.jsonl: the history can be rebuilt from them), and
// then calls the listener. Samples of the machine reach the history a few at a time: at once in the
// first seconds of a run, at most ten seconds late in a long one.
//
// Threads  record(): any thread that took a Producer, wait-free, allocates nothing. step(): engine
//          thread, allocates nothing; with 4,096 records waiting it blocks for one drain rather
//          than lose one. scalar(), message(), answer(): engine thread, outside a
//          step (they copy text). sample(): any thread, never blocks for long.
// Errors   A database that fails, or was deleted, is reported once by an event ("history_failed"),
//          training goes on, the run folder still has everything. Every drain offers the missed
//          rows again, and when the database takes them there is another event ("history_back").
//          close() returns the first failure.
// Lifetime Borrows the store. close() drains and joins; the destructor closes.

#pragma once

#include "core/store/run_store.h"
#include "core/telemetry/event.h"
#include "core/telemetry/recorder_hooks.h"

#include <millrace/run_reader.h>
#include <millrace/status.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace mr {

class Recorder
{
public:
    class Producer
    {
    public:
        virtual ~Producer() = default;
        virtual void record(const TraceEvent& event) noexcept = 0;
    };

    static Result<std::unique_ptr<Recorder>> start(
        RunStore& store, std::int64_t runId, const std::string& runDir, RecorderHooks hooks);
    virtual ~Recorder() = default;

    // One per thread, before the first step. Owned by the Recorder.
    virtual Producer& producer(std::string_view threadName) = 0;

    virtual void step(const StepRow& row) noexcept = 0;
    virtual void scalar(std::string_view metric, const ScalarRow& row) = 0;
    virtual void message(EventLevel level, std::string_view code, std::int64_t step,
        std::int64_t timeMs, std::string text, std::string data = {}) = 0;
    virtual void sample(const MachineSample& sample) = 0;
    virtual void answer(const AnswerRow& row) = 0;
    virtual void interval(const IntervalRow& row) = 0;
    // In this order, after the steps that were given before.
    virtual void checkpoint(const CheckpointRow& row, std::string_view hash) = 0;
    virtual void checkpointState(std::string_view path, std::string_view state) = 0;
    virtual std::uint64_t droppedSpans() const noexcept = 0;

    // Blocks until everything given so far is on the disk, in the run folder and in the history.
    // Not for long where the history does not answer: training does not wait for it.
    virtual Status flush() = 0;
    virtual Status close() = 0;
};

} // namespace mr
