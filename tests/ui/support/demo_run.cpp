#include "ui/support/demo_run.h"

#include "ui/support/demo_rows.h"

#include <algorithm>

namespace mr::ui::test {

namespace {

NewRun newRun(const std::string& name, std::int64_t total)
{
    NewRun run;
    run.uuid = "demo-" + name;
    run.name = name;
    run.modelPath = "/models/millrace-sample";
    run.modelArchitecture = "LlamaForCausalLM";
    run.modelDtype = "bf16";
    run.parameters = 1'200'000;
    run.datasetPath = "/data/questions.jsonl";
    run.datasetFormat = "jsonl";
    run.configJson = R"({"policy":"auto"})";
    run.planJson = toJson(demoPlan());
    run.hostJson = "{}";
    run.engineVersion = "0.1.0";
    run.dir = "/runs/" + name;
    run.totalSteps = total;
    run.simulatedLink = true;
    return run;
}

Status appendRows(RunStore& store, std::int64_t id, std::int64_t count)
{
    StoreBatch batch;
    batch.steps = demoSteps(count);
    batch.intervals = demoIntervals(count);
    for (const ScalarRow& row : demoEvals(count))
        batch.scalars.push_back({"eval_loss", row});
    batch.events = demoEvents(count);
    batch.samples = demoSamples(batch.steps.empty() ? 0 : batch.steps.back().timeMs / 1000);
    return store.append(id, batch);
}

} // namespace

Result<std::int64_t> fillDemoRun(RunStore& store, const std::string& name, std::int64_t count,
    std::int64_t total, RunStatus status)
{
    Result<std::int64_t> id = store.beginRun(newRun(name, total));
    MR_TRY(id.status());
    MR_TRY(store.beginSegment(id.value(), 0));
    MR_TRY(appendRows(store, id.value(), count));
    for (std::int64_t step = 120; step <= std::min<std::int64_t>(count, 240); step += 120) {
        CheckpointRow checkpoint;
        checkpoint.step = step;
        checkpoint.path = "/runs/" + name + "/checkpoint-" + std::to_string(step);
        checkpoint.bytes = std::int64_t{4} << 30;
        checkpoint.state = "complete";
        checkpoint.writeMs = 6300;
        MR_TRY(store.addCheckpoint(id.value(), checkpoint, "0123456789abcdef"));
    }
    if (status == RunStatus::Done || status == RunStatus::Stopped || status == RunStatus::Failed)
        MR_TRY(store.endRun(id.value(), status, 0, ""));
    return id;
}

} // namespace mr::ui::test
