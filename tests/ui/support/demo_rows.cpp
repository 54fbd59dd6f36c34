#include "ui/support/demo_rows.h"

#include "ui/support/demo_timeline.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace mr::ui::test {

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kDevicePeak = 5344 * kMiB;
constexpr std::int64_t kHostPeak = 21870 * kMiB;
constexpr std::int64_t kTokensPerStep = 8192;

// std::normal_distribution differs between libraries; the sum of twelve does not.
double noise(std::mt19937_64& random)
{
    double sum = -6.0;
    for (int i = 0; i < 12; ++i)
        sum += static_cast<double>(random() >> 11) * 0x1p-53;
    return sum;
}

std::int64_t positive(double us)
{
    return std::max<std::int64_t>(0, std::llround(us));
}

void fillStalls(StepRow& row, std::mt19937_64& random)
{
    row.stallUs[0] = positive(95000 + 22000 * noise(random));
    row.stallUs[1] = positive(18000 + 9000 * noise(random));
    row.stallUs[2] = positive((row.step > 380 ? 190000 : 60000) + 20000 * noise(random));
    row.stallUs[3] = positive(row.step % 60 == 0 ? 640000 : 6000 * noise(random));
    row.stallUs[4] = positive(row.step < 8 ? 260000 : 3000 * noise(random));
    row.stallUs[5] = positive(7000 + 1500 * noise(random));
}

} // namespace

std::vector<StepRow> demoSteps(std::int64_t count, std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    std::vector<StepRow> rows;
    rows.reserve(static_cast<std::size_t>(count));
    std::int64_t timeMs = 0;
    for (std::int64_t step = 1; step <= count; ++step) {
        StepRow row;
        row.step = step;
        row.computeUs = positive(410000 + 9000 * noise(random));
        fillStalls(row, random);
        row.wallUs = std::accumulate(row.stallUs.begin(), row.stallUs.end(), row.computeUs);
        row.timeMs = timeMs += row.wallUs / 1000;
        row.tokens = kTokensPerStep - static_cast<std::int64_t>(random() % 900);
        row.lossTokens = row.tokens / 3;
        const auto at = static_cast<double>(step);
        row.loss = 1.62 + 2.4 * std::exp(-at / 90.0) + 0.075 * noise(random);
        const double warm = std::min(1.0, at / 18.0);
        row.learningRate = 2e-5 * warm * 0.5 * (1.0 + std::cos(3.14159265 * at / 600.0));
        row.gradNorm = 0.7 + 2.1 * std::exp(-at / 60.0) + 0.09 * std::abs(noise(random));
        row.h2dBytes = positive(2.31e9 + 1.2e7 * noise(random));
        row.d2hBytes = positive(1.16e9 + 0.9e7 * noise(random));
        row.devicePeakBytes = kDevicePeak;
        row.hostPeakBytes = kHostPeak;
        rows.push_back(row);
    }
    return rows;
}

std::vector<IntervalRow> demoIntervals(std::int64_t count)
{
    std::vector<IntervalRow> rows;
    const auto add = [&](std::int64_t step, IntervalKind kind, std::int64_t us, bool writes) {
        IntervalRow row;
        row.step = step;
        row.kind = kind;
        row.beginUs = kind == IntervalKind::Opening ? -us : step * 620'000;
        row.endUs = row.beginUs + us;
        (writes ? row.stallUs[3] : row.computeUs) = us; // waits for the disk, or computes
        row.diskWriteBytes = writes ? std::int64_t{4400} * kMiB : 0;
        rows.push_back(row);
    };
    if (count > 0)
        add(0, IntervalKind::Opening, 3'100'000, false);
    for (std::int64_t step = 60; step <= count; step += 60) {
        add(step, IntervalKind::Evaluation, 1'400'000, false);
        if (step % 120 == 0)
            add(step, IntervalKind::Checkpoint, 6'300'000, true);
    }
    return rows;
}

std::vector<ScalarRow> demoEvals(std::int64_t count)
{
    std::vector<ScalarRow> rows;
    for (std::int64_t step = 0; step <= count; step += 60)
        rows.push_back(
            {step, step * 620, 1.69 + 2.45 * std::exp(-static_cast<double>(step) / 92.0)});
    return rows;
}

std::vector<EventRow> demoEvents(std::int64_t count)
{
    std::vector<EventRow> rows;
    std::int64_t id = 0;
    const auto add = [&](std::int64_t step, EventLevel level, const char* code, std::string text) {
        rows.push_back({++id, step, step * 620, level, code, std::move(text)});
    };
    add(0, EventLevel::Info, "started", "Run started on the CPU device, policy zero-offload.");
    for (std::int64_t step = 60; step <= count; step += 60) {
        if (step == 420)
            add(400, EventLevel::Warning, "slow",
                "The host update took 190 ms a step, 60 ms before: another program uses the "
                "cores.");
        if (step % 120 == 0)
            add(step, EventLevel::Info, "checkpoint",
                "Checkpoint of step " + std::to_string(step) + " written: 4.1 GiB in 6.3 s.");
        add(step, EventLevel::Info, "eval", "Evaluated 200 sequences.");
    }
    return rows;
}

PlanReport demoPlan()
{
    const auto mib = [](std::uint64_t count) { return count * static_cast<std::uint64_t>(kMiB); };
    PlanReport plan;
    plan.policy = "zero-offload";
    plan.fits = true;
    plan.device = "CPU device";
    plan.precision = "bf16";
    plan.recompute = "block";
    plan.tiers = {{"device", mib(6144), mib(5344),
                      {{"weights", mib(2200)}, {"gradients", mib(540)}, {"activations", mib(1710)},
                          {"workspace", mib(380)}, {"staging", mib(514)}}},
        {"host", mib(32768), mib(21870),
            {{"high plane", mib(2200)}, {"low plane", mib(2200)}, {"first moments", mib(5500)},
                {"second moments", mib(5500)}, {"gradients", mib(4400)}, {"staging", mib(2070)}}},
        {"disk", 0, 0, {}}};
    plan.groups = demoGroups(DemoPolicy::ZeroOffload);
    plan.predictedStepMs = 575.0;
    plan.predictedComputeMs = 402.0;
    plan.predictedStallMs = {88.0, 16.0, 62.0, 0.0, 0.0, 7.0};
    return plan;
}

std::vector<MachineSample> demoSamples(std::int64_t count)
{
    std::mt19937_64 random(5);
    std::vector<MachineSample> samples;
    for (std::int64_t second = 1; second <= count; ++second) {
        MachineSample sample;
        sample.timeMs = second * 1000;
        const bool isEvaluating = second % 37 < 2;
        const double load = isEvaluating ? 0.4 : 0.86 + 0.03 * noise(random);
        const auto at = static_cast<double>(second);
        sample[MachineMetric::DeviceUtilization] = 100.0 * load;
        sample[MachineMetric::DeviceMemoryUtilization] = 46.0 * load + 2.0 * noise(random);
        sample[MachineMetric::DeviceMemoryUsed] = static_cast<double>(kDevicePeak) * 1.04;
        sample[MachineMetric::DevicePcieReceived] = 3.7e9 * load + 2e8 * noise(random);
        sample[MachineMetric::DevicePcieSent] = 1.9e9 * load + 1e8 * noise(random);
        sample[MachineMetric::DevicePower] = 60.0 + 190.0 * load + 4.0 * noise(random);
        sample[MachineMetric::DeviceTemperature] =
            std::round(68.0 - 30.0 * std::exp(-at / 40.0) + 0.4 * noise(random));
        sample[MachineMetric::DeviceSmClock] = isEvaluating ? 1965.0 : 1905.0;
        sample[MachineMetric::DeviceMemoryClock] = 9501.0;
        sample[MachineMetric::ProcessCpu] = 34.0 + 3.0 * noise(random);
        sample[MachineMetric::HostCpu] = 41.0 + 4.0 * noise(random);
        sample[MachineMetric::ProcessResident] = static_cast<double>(kHostPeak) * 1.02;
        sample[MachineMetric::HostMemoryAvailable] = 37.5e9 + 2e8 * noise(random);
        sample[MachineMetric::HostTemperature] = std::round(61.0 + noise(random));
        sample[MachineMetric::HostPower] = 92.0 + 3.0 * noise(random);
        sample[MachineMetric::DiskTemperature] = std::round(54.0 + noise(random));
        samples.push_back(sample);
    }
    return samples;
}

MachineHistoryPtr demoMachine(std::int64_t count)
{
    if (count == 0)
        return nullptr;
    auto history = std::make_shared<MachineHistory>();
    history->endMs = (count + 1) * kMachinePeriodMs;
    for (CounterSeries& series : history->series)
        series.periodMs = kMachinePeriodMs;
    for (const MachineSample& sample : demoSamples(count)) {
        for (std::size_t i = 0; i < kMachineMetrics; ++i) {
            const auto value = static_cast<float>(*sample.values[i]);
            history->series[i].entries.push_back({sample.timeMs, value, value, value});
        }
    }
    return history;
}

RunSnapshotPtr demoSnapshot(std::int64_t count, std::int64_t total, RunStatus status)
{
    auto snapshot = std::make_shared<RunSnapshot>();
    snapshot->generation = 1;
    snapshot->steps.append(demoSteps(count));
    snapshot->intervals = demoIntervals(count);
    snapshot->evalLoss = demoEvals(count);
    snapshot->events = demoEvents(count);
    snapshot->plan = std::make_shared<const PlanReport>(demoPlan());
    for (std::int64_t step = 50; step <= count; step += 50)
        snapshot->traces.push_back({step, step == 400 ? "slowest so far" : "every 50th step"});
    RunRow& run = snapshot->run;
    const RunRowsPtr runs = demoRuns();
    const auto same = std::find_if(
        runs->begin(), runs->end(), [status](const RunRow& row) { return row.status == status; });
    run = same == runs->end() ? runs->front() : *same;
    run.status = status;
    run.devicePeakBytes = kDevicePeak;
    run.hostPeakBytes = kHostPeak;
    run.lastStep = count;
    run.totalSteps = total;
    run.bestEval = snapshot->evalLoss.back().value;
    run.bestEvalStep = snapshot->evalLoss.back().step;
    run.activeUs = count > 0 ? snapshot->steps.back().timeMs * 1000 : 0;
    for (const IntervalRow& row : snapshot->intervals)
        run.activeUs += row.endUs - std::max<std::int64_t>(row.beginUs, 0);
    run.resumable =
        status == RunStatus::Stopped || status == RunStatus::Lost || status == RunStatus::Failed;
    snapshot->machine = demoMachine(run.activeUs / 1'000'000);
    run.energyJ =
        snapshot->machine ? 224.0 * static_cast<double>(run.activeUs) / 1e6 : std::nan("");
    return snapshot;
}

RunSnapshotPtr demoExported(std::int64_t count)
{
    auto run = std::make_shared<RunSnapshot>(*demoSnapshot(count, count, RunStatus::Done));
    ExportRow failed;
    failed.form = "gguf";
    failed.type = "q4_0";
    failed.path = "/home/ada/Documents/Notes-gguf.failed.gguf";
    failed.bytes = 671'088'640;
    failed.faults = {"3 of 200 texts become other tokens: <s> is taken as text"};
    failed.facts = {"Q4_0: 596049920 weights, read back with an error of 0.076 of their size"};
    failed.createdMs = 1'764'322'200'000;
    ExportRow passed;
    passed.form = "ollama";
    passed.type = "q8_0";
    passed.path = "/home/ada/Documents/Notes-ollama";
    passed.bytes = 1'181'116'006;
    passed.passed = true;
    passed.facts = {"asked: 200 of 200 texts become the same tokens; in 10 answers 99.1 % of 640 "
                    "tokens agree, mean KL 0.0004"};
    passed.createdMs = 1'764'320'400'000;
    ExportRow newer; // a form that this program does not know
    newer.form = "tablet";
    newer.type = "int8";
    newer.path = "/media/ada/Backup/fine-tuned/2025/notes/second-try/tablet";
    newer.passed = true;
    newer.createdMs = 1'764'233'100'000;
    run->exports = {failed, passed, newer};
    return run;
}

RunSnapshotPtr demoPaused(std::int64_t count, std::int64_t total, bool isFull)
{
    auto run = std::make_shared<RunSnapshot>(*demoSnapshot(count, total, RunStatus::Paused));
    EventRow row{1'000, count, count * 620, EventLevel::Warning, "paused",
        "Paused: the disk is full. In /data/runs/notes, the checkpoint of step " +
            std::to_string(count) + " needs 4.1 GiB; 1.2 GiB are free."};
    row.data = std::string(R"({"reason":")") + (isFull ? "full" : "unwritable") +
               R"(","what":"checkpoint","step":)" + std::to_string(count) +
               R"(,"folder":"/data/runs/notes","needed_bytes":4402341478,)"
               R"("free_bytes":1288490188,"why":"Read-only file system"})";
    run->events.push_back(std::move(row));
    return run;
}

RunRowsPtr demoRuns()
{
    struct Demo {
        const char* name;
        RunStatus status;
        const char* model;
        const char* dataset;
        std::int64_t step;
        std::int64_t total;
        double loss;
        double eval;
        const char* reason;
    };
    const Demo demos[] = {
        {"Notes, second try", RunStatus::Running, "Qwen2.5-3B", "notes.jsonl", 412, 600, 1.6421,
            1.7183, ""},
        {"Notes, first try", RunStatus::Stopped, "Qwen2.5-3B", "notes.jsonl", 180, 600, 1.9377,
            2.0371, "Stopped by the user."},
        {"Sample project", RunStatus::Done, "millrace-sample", "questions.jsonl", 300, 300, 0.4182,
            0.4507, ""},
        {"tinyshakespeare", RunStatus::Done, "stories260K", "tinyshakespeare.txt", 300, 300, 2.2143,
            2.2264, ""},
        {"Long context", RunStatus::Failed, "Llama-3.2-1B", "books.txt", 37, 900, 3.0218,
            std::nan(""),
            "The loss became not a number at step 38. Start with a lower learning rate."},
        {"Over night", RunStatus::Lost, "Llama-3.2-1B", "books.txt", 733, 900, 2.4871, 2.5512,
            "The program ended without saying goodbye (power loss?)."},
        {"Support tickets", RunStatus::Done, "SmolLM2-360M", "tickets.csv", 1240, 1240, 1.1026,
            1.2250, ""},
    };
    auto runs = std::make_shared<std::vector<RunRow>>();
    std::int64_t id = 7;
    for (const Demo& demo : demos) {
        RunRow run;
        run.id = id--;
        run.name = demo.name;
        run.status = demo.status;
        run.modelName = demo.model;
        run.datasetName = demo.dataset;
        run.planJson =
            run.id % 2 == 0 ? R"({"policy":"resident"})" : R"({"policy":"zero-offload"})";
        run.createdMs = 1'700'000'000'000 + run.id * 5'400'000;
        run.lastStep = demo.step;
        run.totalSteps = demo.total;
        run.tokens = demo.step * kTokensPerStep;
        run.computeUs = demo.step * 410'000;
        run.stallUs = demo.step * 23'000 * run.id;
        run.activeUs = run.computeUs + run.stallUs;
        run.lastLoss = demo.loss;
        run.bestEval = demo.eval;
        run.bestEvalStep = std::isnan(demo.eval) ? -1 : demo.step / 60 * 60;
        run.devicePeakBytes = kDevicePeak / (8 - run.id);
        run.hostPeakBytes = kHostPeak / (8 - run.id);
        run.exitReason = demo.reason;
        run.dir = "/home/user/.local/share/millrace/runs/" + std::to_string(run.id);
        run.resumable = run.status == RunStatus::Stopped || run.status == RunStatus::Lost ||
                        run.status == RunStatus::Failed;
        runs->push_back(run);
    }
    for (RunRow& run : *runs)
        run.startsAgain = run.status == RunStatus::Failed;
    (*runs)[0].devicePeakBytes = kDevicePeak;
    (*runs)[0].hostPeakBytes = kHostPeak;
    (*runs)[0].simulatedLink = true;
    return runs;
}

} // namespace mr::ui::test
