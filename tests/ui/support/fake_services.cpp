#include "ui/support/fake_services.h"

#include "ui/support/demo_timeline.h"

#include <QDir>
#include <QFile>

#include <thread>
#include <utility>

namespace mr::ui::test {

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::int64_t kFirstRunId = 7;

class FakeSession final : public Session
{
public:
    FakeSession(std::shared_ptr<FakeRun> run, std::int64_t id)
        : m_run(std::move(run))
        , m_id(id)
    {
    }

    ~FakeSession() override
    {
        const std::scoped_lock lock(m_run->mutex);
        m_run->destroyed = true;
    }

    Status start() override
    {
        const std::scoped_lock lock(m_run->mutex);
        m_run->started = m_run->startFailure.ok();
        return m_run->startFailure;
    }

    void requestStop() noexcept override
    {
        const std::scoped_lock lock(m_run->mutex);
        m_run->stopAsked = true;
        m_run->changed.notify_all();
    }

    void saveNow() noexcept override
    {
        const std::scoped_lock lock(m_run->mutex);
        ++m_run->savesAsked;
    }

    void answerPause(PauseAnswer answer) override
    {
        const std::scoped_lock lock(m_run->mutex);
        m_run->answers.push_back(std::move(answer));
    }

    Status ask(Question question) override
    {
        const std::scoped_lock lock(m_run->mutex);
        m_run->questions.push_back(std::move(question));
        return m_run->askFailure;
    }

    void stopAnswer() noexcept override
    {
        const std::scoped_lock lock(m_run->mutex);
        m_run->answerStopped = true;
    }

    RunState state() const noexcept override
    {
        const std::scoped_lock lock(m_run->mutex);
        return m_run->stopAsked && !m_run->stopComesLate ? RunState::Stopped : RunState::Finished;
    }

    Status failure() const override { return {}; }
    std::int64_t runId() const noexcept override { return m_id; }

    Status wait() override
    {
        std::unique_lock lock(m_run->mutex);
        m_run->changed.wait(lock, [this] { return m_run->endNow || m_run->stopAsked; });
        return m_run->endFailure;
    }

private:
    std::shared_ptr<FakeRun> m_run;
    std::int64_t m_id;
};

class FakeReader final : public RunReader
{
public:
    FakeReader(std::shared_ptr<FakeRun> run, std::shared_ptr<const std::vector<RunRow>> runs)
        : m_run(std::move(run))
        , m_runs(std::move(runs))
    {
    }

    Result<std::vector<RunRow>> runs() override { return those(false); }
    Result<std::vector<RunRow>> deletedRuns() override { return those(true); }

    Result<RunRow> run(std::int64_t id) override
    {
        if (m_runs) {
            for (const RunRow& row : *m_runs) {
                if (row.id == id)
                    return row;
            }
        }
        return Status::error(ErrorKind::InvalidArgument, "there is no run " + std::to_string(id));
    }

    Result<std::vector<StepRow>> steps(std::int64_t, std::int64_t, std::int64_t) override
    {
        return std::vector<StepRow>();
    }

    Result<std::vector<ScalarRow>> scalars(std::int64_t, std::string_view, std::int64_t) override
    {
        return std::vector<ScalarRow>();
    }

    Result<std::vector<EventRow>> events(std::int64_t, std::int64_t) override
    {
        return std::vector<EventRow>();
    }

    Result<std::vector<CheckpointRow>> checkpoints(std::int64_t) override
    {
        return std::vector<CheckpointRow>();
    }

    Result<std::vector<AnswerRow>> answers(std::int64_t) override
    {
        const std::scoped_lock lock(m_run->mutex);
        return m_run->runAnswers;
    }

    Result<std::vector<CounterInfo>> counters(std::int64_t) override
    {
        return std::vector<CounterInfo>();
    }

    Result<CounterSeries> counter(std::int64_t, std::string_view, const CounterWindow&) override
    {
        return CounterSeries();
    }

    Result<std::vector<TraceInfo>> traces(std::int64_t) override
    {
        return std::vector<TraceInfo>();
    }

    Result<StepTimeline> timeline(std::int64_t, std::int64_t step) override
    {
        if (step % 50 == 0)
            return demoTimeline(DemoPolicy::ZeroOffload, step);
        return Status::error(
            ErrorKind::InvalidArgument, "there is no timeline of step " + std::to_string(step));
    }

private:
    std::vector<RunRow> those(bool deleted) const
    {
        std::vector<RunRow> rows;
        for (const RunRow& row : m_runs ? *m_runs : std::vector<RunRow>()) {
            if ((row.deletedMs > 0) == deleted)
                rows.push_back(row);
        }
        return rows;
    }

    std::shared_ptr<FakeRun> m_run;
    std::shared_ptr<const std::vector<RunRow>> m_runs;
};

Result<std::unique_ptr<Session>> makeSession(
    const std::shared_ptr<FakeRun>& run, Session::Listener listener, const OpeningWatch& watch)
{
    if (run->fillsFirst) {
        watch.onScratchFill(3 * kGiB, 12 * kGiB);
        while (!watch.isCancelled())
            std::this_thread::yield();
        return Status::error(ErrorKind::Cancelled, "stopped while the scratch file was written");
    }
    const std::scoped_lock lock(run->mutex);
    if (!run->openFailure.ok())
        return run->openFailure;
    run->listener = std::move(listener);
    run->started = run->stopAsked = run->endNow = run->destroyed = false;
    const auto before = static_cast<std::int64_t>(run->opened.empty() ? 0 : run->opened.size() - 1);
    return std::unique_ptr<Session>(new FakeSession(run, kFirstRunId + before));
}

MachineInfo fakeMachine()
{
    MachineInfo pc;
    pc.cpuName = "AMD EPYC 9654 96-Core Processor";
    pc.instructionSet = "avx512_bf16";
    pc.physicalCores = 2;
    pc.threads = 2;
    pc.memoryBytes = 16 * kGiB;
    pc.availableBytes = 11 * kGiB;
    pc.diskFreeBytes = 120 * kGiB;
    return pc;
}

Result<ModelInfo> fakeModel(const std::string& path)
{
    if (path != kGoodModel)
        return Status::error(ErrorKind::InvalidArgument,
            path + " has no config.json: choose the folder of a Hugging Face model");
    ModelInfo info;
    info.path = path;
    info.name = "small-llama";
    info.architecture = "LlamaForCausalLM";
    info.dtype = "float32";
    info.parameters = 1'100'000'000;
    info.layers = 22;
    info.hidden = 2048;
    info.vocab = 32000;
    info.maxPositions = 2048;
    info.bytes = 2200 * kMiB;
    info.tokenizerKind = "SentencePiece";
    return info;
}

Result<ScratchInfo> fakeScratch(const std::string& path)
{
    ScratchInfo info;
    info.path = path;
    info.fileSystem = "ext4";
    info.drive = "nvme0n1";
    info.driveBytes = 2'000'000'000'000;
    info.freeBytes = 820 * kGiB;
    info.temperatureCelsius = 41.0;
    if (path.starts_with(kFastScratch))
        return info;
    info.drive = "nvme1n1";
    info.speed = {6.6e9, 5.1e9, 3.1e9, 2.8e9};
    if (path.starts_with(kOtherScratch))
        return info;
    info.speed = {};
    info.drive.clear();
    info.driveBytes = 0;
    info.temperatureCelsius.reset();
    info.fileSystem = "tmpfs";
    info.freeBytes = 7 * kGiB;
    info.warnings = {path + " lies on tmpfs, which is memory: what is put there does not save any. "
                            "Choose a folder on an SSD."};
    if (path == kMemoryScratch)
        return info;
    info.usable = false;
    info.warnings = {path + " lies on ext4, and cannot be written."};
    if (path == kFrozenScratch)
        return info;
    return Status::error(
        ErrorKind::Io, "cannot look at the scratch folder " + path + ": No such file or directory");
}

Result<Answer> fakeAnswer(
    FakeRun& run, const std::string& path, const Prompt& prompt, const AnswerWatch& watch)
{
    {
        const std::scoped_lock lock(run.mutex);
        run.asked.emplace_back(path, prompt);
    }
    if (path == kBadModel)
        return Status::error(ErrorKind::InvalidArgument, path + " has no config.json");
    const bool isTuned = path != kGoodModel && path != kPlainModel;
    Answer answer;
    answer.byTemplate = path != kPlainModel;
    answer.read = answer.byTemplate
                      ? "<|im_start|>user\n" + prompt.text + "<|im_end|>\n<|im_start|>assistant\n"
                      : prompt.text + "\n";
    answer.promptTokens = 18;
    watch.onRead(answer);
    const std::vector<const char*> pieces =
        isTuned ? std::vector<const char*>{"Four", " boxes", " of", " six", " eggs", " are", " 24",
                      " eggs", "."}
                : std::vector<const char*>{"Eggs", " are", " sold", " in", " boxes", ",", " and",
                      " boxes", " are", " sold", " in", " shops", ","};
    for (const char* piece : pieces) {
        answer.text += piece;
        ++answer.tokens;
        bool goesOn = watch.onText(piece);
        while (goesOn && run.holdAnswer) {
            std::this_thread::yield();
            goesOn = watch.onText("");
        }
        if (!goesOn)
            return answer;
    }
    answer.ended = isTuned;
    answer.seconds = 0.5;
    return answer;
}

PreviewRow previewRow(std::int64_t row, const std::vector<const char*>& prompt,
    const std::vector<const char*>& response)
{
    PreviewRow made;
    made.row = row;
    std::int32_t id = 300;
    for (const char* text : prompt)
        made.tokens.push_back({text, id++, false});
    for (const char* text : response)
        made.tokens.push_back({text, id++, true});
    return made;
}

} // namespace

void FakeRun::finish()
{
    const std::scoped_lock lock(mutex);
    endNow = true;
    changed.notify_all();
}

DatasetInfo fakeDataset()
{
    DatasetInfo info;
    info.path = kGoodData;
    info.format = DataFormat::Jsonl;
    info.columns = {"id", "question", "answer"};
    info.mapping = {{"prompt", "question"}, {"response", "answer"}};
    info.rows = 2000;
    info.sequences = 2000;
    info.tokens = 61234;
    info.trainedTokens = 20480;
    info.cutRows = 3;
    info.seqLen = 64;
    info.packedRows = 931;
    info.bytes = 260 * 1024;
    info.preview = {
        previewRow(1, {"<s>", " What", " is", " 12", " plus", " 30", "?", "\n"},
            {" 12", " plus", " 30", " is", " 42", ".", "</s>"}),
        previewRow(2,
            {"<s>", " A", " shop", " sells", " eggs", " in", " boxes", " of", " six", ".", " How",
                " many", " eggs", " are", " in", " four", " boxes", "?", "\n"},
            {" There", " are", " 24", " eggs", ".", "</s>"}),
        previewRow(3, {"<s>", " Which", " day", " comes", " after", " Monday", "?", "\n"},
            {" Tuesday", " comes", " after", " Monday", ".", "</s>"}),
    };
    info.preview.back().cut = true;
    return info;
}

DatasetInfo fakeChats()
{
    DatasetInfo info = fakeDataset();
    info.path = kChatData;
    info.columns = {"id", "messages", "tools"};
    info.mapping = {{"messages", "messages"}, {"tools", "tools"}};
    info.cutRows = 0;
    info.emptyRows = 2;
    info.answers = 4000;
    info.emptyThoughts = 1640;
    info.unreadSwitches = 12;
    info.notes = {"tokenizer.json cuts words in another way than the tekken.json beside it"};
    PreviewRow chat = previewRow(1,
        {"<|im_start|>", "user", "\n", "How", " many", " eggs", "?", "<|im_end|>", "\n",
            "<|im_start|>", "assistant", "\n"},
        {"Four", " boxes", " of", " six", ":", " 24", ".", "<|im_end|>"});
    const PreviewRow next = previewRow(1,
        {"\n", "<|im_start|>", "user", "\n", "And", " five", "?", "<|im_end|>", "\n",
            "<|im_start|>", "assistant", "\n"},
        {"30", ".", "<|im_end|>"});
    chat.tokens.insert(chat.tokens.end(), next.tokens.begin(), next.tokens.end());
    info.preview = {chat};
    return info;
}

Result<DataChecks> fakeChecks(const CheckRequest& request)
{
    if (request.onRows && !request.onRows(1000))
        return Status::error(ErrorKind::Cancelled, "the checks were stopped");
    DataChecks checks;
    checks.rows = 2000;
    checks.seqLen = request.seqLen;
    const auto add = [&checks](RowCheck check, CheckedRow row) {
        checks.found[static_cast<std::size_t>(check)].push_back(row);
    };
    for (const std::int64_t row : {17, 930, 1204})
        add(RowCheck::Cut, {row, row, 0, "longer than the sequence"});
    for (const std::int64_t row : {411, 412, 413, 1777})
        add(RowCheck::Duplicate, {row, row, row - 400, "repeats an earlier row"});
    add(RowCheck::NearDuplicate, {1801, 1801, 3, "nearly repeats an earlier row"});
    if (request.evaluation)
        add(RowCheck::InEvaluation, {17, 17, 5, "stands in the evaluation data"});
    checks.lengths = {{24, 1200}, {41, 797}, {90, 2}, {200, 1}};
    return checks;
}

DatasetInfo fakeUnclear(const DataSource& source)
{
    DatasetInfo info = fakeDataset();
    info.path = kUnclearData;
    info.columns = {"question", "hint", "answer", "q&a"};
    info.mapping = source.columns;
    if (!source.columns.empty())
        return info;
    const std::string question = "\"What is 12 plus 30?\"";
    const std::string hint = "\"Add the tens first.\"";
    const std::string answer = "\"42.\"";
    info.refusal = DataRefusal::UnknownColumns;
    info.problems = {kUnclearData + ": say which is meant: --map"};
    info.preview.clear();
    info.readings = {
        {"pairs", {{"prompt", "question"}, {"input", "hint"}, {"response", "answer"}},
            question + " + " + hint + " -> " + answer,
            {{"prompt", question}, {"input", hint}, {"response", answer}}},
        {"pairs", {{"prompt", "question"}, {"response", "answer"}}, question + " -> " + answer,
            {{"prompt", question}, {"response", answer}}},
        {"text", {{"text", "q&a"}}, question, {{"text", question}}},
    };
    return info;
}

DatasetInfo fakeHoles(bool skipped)
{
    DatasetInfo info = fakeDataset();
    info.path = kHoleyData;
    const std::map<std::string, std::int64_t> rows{{"json", 3}, {"utf8", 1}};
    if (skipped) {
        info.rowsSkipped = rows;
        return info;
    }
    info.rowsRefused = {kHoleyData + ", line 12: not valid JSON (row 12)", rows};
    info.problems = {info.rowsRefused.first + "; --skip-bad-rows leaves them out"};
    return info;
}

bool makeSampleFolder(const QString& folder)
{
    const QDir dir(folder);
    bool made = dir.mkpath(QStringLiteral("model"));
    for (const char* name : {"model/config.json", "train.jsonl", "eval.jsonl"})
        made = QFile(dir.filePath(QLatin1String(name))).open(QIODevice::WriteOnly) && made;
    return made;
}

PlanReport fakePlan(bool fits)
{
    PlanReport plan;
    plan.policy = "zero-offload";
    plan.reason = fits ? "the fastest that fits: zero-offload order=by-layer, 4.21 s a step; next "
                         "zero-offload, 4.60 s"
                       : "";
    plan.fits = fits;
    plan.limit = fits ? "" : "device memory: 1.8 GiB short";
    if (!fits) {
        plan.advice = {"Halve the sequence length to 512.",
            "Keep the optimizer state in host memory: policy zero-offload."};
        plan.lighter = {
            {true, false, Optimizer::AdamW, WeightFormat::Auto, "streamed", 11 * kGiB / 2, 2100.0},
            {false, false, Optimizer::Factored, WeightFormat::Auto, "streamed", 33 * kGiB / 10,
                4300.0},
            {false, false, Optimizer::Factored, WeightFormat::Random16, "streamed", 22 * kGiB / 10,
                0.0},
            {false, true, Optimizer::AdamW, WeightFormat::Auto, "streamed", 24 * kGiB / 10,
                3900.0}};
    }
    plan.device = "CPU (2 threads)";
    plan.precision = "bf16";
    plan.recompute = "block";
    plan.method = "full";
    plan.parameters = plan.trainedParameters = 1'100'000'000;
    plan.steps = 250;
    plan.tokensPerStep = 8192;
    const std::uint64_t budget = fits ? 6 * kGiB : 3 * kGiB;
    plan.tiers = {
        {"device", budget, 4912 * kMiB,
            {{"weights", 2098 * kMiB}, {"accumulators", 1400 * kMiB}, {"activations", 900 * kMiB},
                {"boundaries", 176 * kMiB}, {"workspace", 200 * kMiB}, {"head", 120 * kMiB},
                {"batches", 2 * kMiB}, {"constants", 8 * kMiB}, {"scalars", 8 * kMiB}}},
        {"host", 12 * kGiB, 11000 * kMiB,
            {{"high plane", 2098 * kMiB}, {"low plane", 2098 * kMiB},
                {"first moments", 4704 * kMiB}, {"gradients", 2100 * kMiB}}},
    };
    plan.checkpointBytes = 1320 * kMiB;
    plan.h2dBytesPerStep = static_cast<std::int64_t>(2098 * kMiB);
    plan.d2hBytesPerStep = static_cast<std::int64_t>(2098 * kMiB);
    plan.predictedStepMs = 4210.0;
    plan.predictedComputeMs = 3300.0;
    plan.predictedStallMs = {350.0, 180.0, 340.0, 0.0, 0.0, 40.0};
    return plan;
}

PlanReport fakeAdapterPlan(std::int64_t rank)
{
    PlanReport plan = fakePlan(true);
    plan.method = "lora";
    plan.policy = "resident";
    plan.reason.clear();
    plan.trainedParameters = rank * 788'480;
    plan.tiers = {{"device", 6 * kGiB, 3010 * kMiB,
                      {{"frozen weights", 2098 * kMiB}, {"first moments", 112 * kMiB},
                          {"activations", 800 * kMiB}}},
        {"host", 12 * kGiB, 12 * kMiB, {{"batches", 12 * kMiB}}}};
    plan.checkpointBytes = static_cast<std::uint64_t>(rank) * 12 * kMiB;
    plan.h2dBytesPerStep = plan.d2hBytesPerStep = 0;
    plan.predictedStepMs = 3080.0;
    plan.predictedComputeMs = 3080.0;
    plan.predictedStallMs = {};
    return plan;
}

// The plan of a model that is held in 4 bits.
PlanReport fakeNf4Plan(std::int64_t rank)
{
    PlanReport plan = fakeAdapterPlan(rank);
    plan.method = "qlora";
    plan.tiers[0].totalBytes = 1580 * kMiB;
    plan.tiers[0].kinds[0].bytes = 668 * kMiB;
    plan.predictedStepMs = 3190.0;
    return plan;
}

// One block at a time: the state of one, the others in host memory.
PlanReport fakeBlocksPlan()
{
    PlanReport plan = fakePlan(true);
    plan.method = "blocks";
    plan.policy = "streamed";
    plan.tiers[0].totalBytes = 3140 * kMiB;
    plan.tiers[1].totalBytes = 2710 * kMiB;
    plan.predictedStepMs = 2260.0;
    return plan;
}

Result<std::vector<PlanReport>> fakeMethods(const RunSpec& spec)
{
    std::vector<PlanReport> plans = {fakePlan(spec.microBatch < 8), fakeBlocksPlan()};
    if (spec.method == "full" && !spec.trainLayers.empty()) {
        plans.push_back(PlanReport(plans.front()));
        plans.back().method = "layers";
    }
    for (PlanReport plan : {fakeAdapterPlan(spec.rank), fakeNf4Plan(spec.rank)}) {
        if (spec.rank > 1024) {
            const std::string method = plan.method;
            plan = {};
            plan.method = method;
            plan.limit = "rank 2048 is larger than self_attn.k_proj";
        }
        plans.push_back(std::move(plan));
    }
    return plans;
}

void addDisk(PlanReport& plan)
{
    plan.tiers.push_back({"disk", 200 * kGiB, 9408 * kMiB,
        {{"first moments", 4704 * kMiB}, {"second moments", 4704 * kMiB}}});
    plan.diskReadBytesPerStep = static_cast<std::int64_t>(9408 * kMiB);
    plan.diskWriteBytesPerStep = static_cast<std::int64_t>(9200 * kMiB);
    plan.diskWriteBytesOfRun = 2310 * kGiB;
    plan.wear = "The run writes 2.41 TB to nvme0n1, 9.65 GB a step. For a drive of 2.00 TB a "
                "rating of 1.20 PB written is assumed (600 for each of its size; its data sheet "
                "has the real one): 124,395 steps or 6.1 days, of which the run takes 0.2 %. These "
                "are bytes given to the drive; inside it may write more.";
}

UiServices fakeServices(
    std::shared_ptr<FakeRun> run, std::shared_ptr<const std::vector<RunRow>> runs)
{
    UiServices services;
    services.open = [run](const RunSpec& spec, Session::Listener listener,
                        const OpeningWatch& watch) {
        {
            const std::scoped_lock lock(run->mutex);
            run->openedWith = spec;
            run->opened.push_back(spec);
        }
        return makeSession(run, std::move(listener), watch);
    };
    services.resume = [run](const std::string& dir, Session::Listener listener,
                          const OpeningWatch& watch) {
        {
            const std::scoped_lock lock(run->mutex);
            run->resumedDir = dir;
        }
        return makeSession(run, std::move(listener), watch);
    };
    services.openReader = [run, runs](const std::string&) -> Result<std::unique_ptr<RunReader>> {
        return std::unique_ptr<RunReader>(new FakeReader(run, runs));
    };
    services.answer = [run](
                          const std::string& path, const Prompt& prompt, const AnswerWatch& watch) {
        return fakeAnswer(*run, path, prompt, watch);
    };
    services.findModels = [](const std::vector<std::string>&) { return LocalModels(); };
    services.inspectMachine = fakeMachine;
    services.inspectModel = fakeModel;
    services.inspectDataset = [](const DataSource& source, const std::string& model,
                                  std::int64_t seqLen, int) -> Result<DatasetInfo> {
        if (!model.empty() && seqLen < 1)
            return Status::error(
                ErrorKind::InvalidArgument, "the sequence length must be at least 1");
        if (source.path == kGoodData) {
            DatasetInfo info = fakeDataset();
            info.rowsExcluded = source.excluded.count();
            info.rows -= info.rowsExcluded;
            return info;
        }
        if (source.path == kChatData)
            return fakeChats();
        if (source.path == kUnclearData)
            return fakeUnclear(source);
        if (source.path == kHoleyData)
            return fakeHoles(source.skipBadRows);
        DatasetInfo broken;
        broken.path = source.path;
        broken.problems = {"line 12 is not valid JSON: missing quote at column 71"};
        return broken;
    };
    services.checkDataset = fakeChecks;
    services.readRowTexts = [](const DataSource&, const RowList& rows,
                                std::size_t) -> Result<std::vector<RowText>> {
        std::vector<RowText> texts;
        for (std::int64_t row = 1; row <= rows.last(); ++row)
            if (rows.contains(row))
                texts.push_back({row, "question: How many eggs are in four boxes of six? | answer: "
                                      "There are 24 eggs."});
        return texts;
    };
    services.inspectScratch = fakeScratch;
    services.measureScratch = [](const std::string&,
                                  const ScratchMeasuring&) -> Result<ScratchSpeed> {
        return ScratchSpeed{3.2e9, 2.9e9, 1.6e9, 1.5e9};
    };
    services.checkSpec = [](const RunSpec&) { return Status(); };
    services.resolveSpec = [](const RunSpec& spec, std::int64_t) -> Result<RunSpec> {
        return spec;
    };
    services.measureRates = [](const RunSpec&) { return Status(); };
    services.planRun = [](const RunSpec& spec) -> Result<PlanReport> {
        PlanReport plan = fakePlan(spec.microBatch < 8);
        if (isAdapterRun(spec))
            plan = spec.method == "qlora" ? fakeNf4Plan(spec.rank) : fakeAdapterPlan(spec.rank);
        if (trainsInTurns(spec))
            plan = fakeBlocksPlan();
        if (!spec.trainLayers.empty())
            plan.trainedParameters = 240'000'000;
        if (spec.policy != "auto") {
            plan.policy = spec.policy;
            plan.reason.clear();
        }
        if (!spec.diskPaths.empty())
            addDisk(plan);
        if (spec.policy == "zenflow") {
            plan.exact = false;
            plan.maxStaleSteps = 7;
            plan.predictedStepMs = 3370.0;
            plan.predictedStallMs = {30.0, 20.0, 0.0, 0.0, 0.0, 20.0};
        }
        return plan;
    };
    services.planAllMethods = fakeMethods;
    services.planFromJson = [](const std::string&) -> Result<PlanReport> { return fakePlan(true); };
    services.policies = {{"auto", {}}, {"resident", "all on the card"},
        {"zero-offload", "state in RAM"}, {"zenflow", "hot columns first"},
        {"zero-offload-dpu", "state in RAM, late by one step"}};
    services.database = "/nowhere/history.db";
    services.runsFolder = "/tmp/millrace-test-runs";
    services.sampleDir = "/nowhere/sample";
    return services;
}

} // namespace mr::ui::test
