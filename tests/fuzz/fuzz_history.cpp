#include "core/store/run_store.h"
#include "fuzz/fuzz_rig.h"
#include "fuzz/targets.h"

#include <millrace/run_reader.h>
#include <millrace/step_timeline.h>

namespace mr::fuzz {
namespace {

constexpr std::size_t kMostRuns = 3;

void readRun(RunReader& reader, std::int64_t id)
{
    (void)check(reader.run(id));
    (void)check(reader.steps(id, 0, 100));
    (void)check(reader.scalars(id, "eval_loss", -1));
    (void)check(reader.events(id, 0));
    (void)check(reader.checkpoints(id));
    (void)check(reader.exports(id));
    if (auto counters = reader.counters(id); check(counters))
        for (std::size_t i = 0; i < std::min<std::size_t>(counters.value().size(), 3); ++i)
            for (const CounterWindow window :
                {CounterWindow{0, 10'000, 4}, CounterWindow{-5, counters.value()[i].endMs, 1}})
                (void)check(reader.counter(id, counters.value()[i].metric, window));
    if (auto traces = reader.traces(id); check(traces) && !traces.value().empty())
        (void)check(reader.timeline(id, traces.value().front().step));
}

} // namespace

void history(std::string_view bytes)
{
    static const FuzzFolder folder;
    for (const char* beside : {"history.db-wal", "history.db-shm", "history.db-journal"})
        folder.remove(beside);
    const std::string path = folder.write("history.db", bytes).string();
    {
        Result<std::unique_ptr<RunReader>> reader = RunReader::open(path);
        if (!check(reader))
            return;
        auto runs = reader.value()->runs();
        if (check(runs))
            for (std::size_t i = 0; i < std::min(runs.value().size(), kMostRuns); ++i)
                readRun(*reader.value(), runs.value()[i].id);
    }
    Result<std::unique_ptr<RunStore>> store = RunStore::open(path);
    if (check(store))
        (void)check(store.value()->beginRun({}));
}

} // namespace mr::fuzz
