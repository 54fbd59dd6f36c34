// Gates under the two rules of a real driver: plans of large models, enqueued as they used to be,
// end in a deadlock; with the limits of StepLanes none does.

#include "core/base/failure_latch.h"
#include "core/plan/policies.h"
#include "core/step/step_lanes.h"
#include "gpu/command_count.h"
#include "gpu/cuda_stream.h"
#include "gpu/runtime/fake_cudart.h"
#include "support/test_room.h"
#include "tests/core/plan/plan_shapes.h"

#include <QTest>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace mr::test::tst_gate_deadlock {

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr int kMicroBatches = 2;
// Kernels and events that a block launches in forward, about; its backward launches twice as many.
constexpr int kForwardCommands = 15;
// Enqueues as if nothing could be in the way.
constexpr std::uint64_t kEndless = std::uint64_t{1} << 62;
constexpr GateLimits kNoLimits{0, kEndless, kEndless};
// Between two looks at what has moved: a thread that only yields keeps a processor from the others.
constexpr std::chrono::microseconds kPause{20};
// Delay of other threads where the deadlock of the order of before is to be seen.
constexpr std::chrono::milliseconds kLate{2};
// The head of a model with a large vocabulary, of which a chunk has few rows.
constexpr int kHeadCommands = 600;

// Streams, events and gates of the CUDA device over the fake runtime.
class LaneDevice final : public Device
{
public:
    LaneDevice()
        : m_shared(kMiB)
    {
        (void)cudaStreamCreateWithFlags(&m_service, cudaStreamNonBlocking);
        m_shared.driver = gpu::loadDriverApi(0);
        (void)m_shared.clock.open(m_service).ok();
        m_info.asynchronous = m_info.waitsForGates = m_info.loadsLazily = true;
    }
    ~LaneDevice() override { (void)cudaStreamDestroy(m_service); }

    const DeviceInfo& info() const noexcept override { return m_info; }
    Result<Buffer> allocate(std::size_t bytes, MemoryKind kind, std::string_view tag) override
    {
        return m_shared.memory.allocate(bytes, kind, tag, m_service);
    }
    Result<std::unique_ptr<Stream>> createStream(std::string_view name) override
    {
        cudaStream_t handle = nullptr;
        (void)cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking);
        return std::unique_ptr<Stream>(new gpu::CudaStream(name, handle, m_shared));
    }
    Result<std::unique_ptr<Event>> createEvent() override
    {
        cudaEvent_t handle = nullptr;
        (void)cudaEventCreateWithFlags(&handle, cudaEventBlockingSync);
        return std::unique_ptr<Event>(new gpu::CudaEvent(handle, m_shared));
    }
    Result<std::unique_ptr<Gate>> createGate(std::string_view name) override
    {
        return std::unique_ptr<Gate>(new gpu::CudaGate(name, m_shared.gateWords.take().value()));
    }
    void submit() noexcept override { m_shared.clock.advance(); }
    std::uint64_t enqueuedCommands() const noexcept override { return gpu::g_commands.load(); }
    MemoryUsage memoryUsage() const noexcept override { return m_shared.memory.usage(); }
    LinkBytes linkBytes() const noexcept override { return m_shared.copied; }
    Ops& ops() noexcept override { qFatal("no op is run here"); }

private:
    gpu::CudaShared m_shared;
    cudaStream_t m_service = nullptr;
    DeviceInfo m_info;
};

// The disk thread without a disk: it asks whether events have passed, and opens gates.
class IdleDisk final : public DiskLanes
{
public:
    explicit IdleDisk(Device& device)
    {
        for (auto& gate : m_gates)
            gate = std::move(device.createGate("disk")).value();
    }
    ~IdleDisk() { stop(); }

    // Opens all gates, as after a failure, and asks no event any more.
    void stop()
    {
        if (!m_thread.joinable())
            return;
        {
            const std::lock_guard lock(m_mutex);
            m_stops = true;
        }
        m_hasWork.notify_all();
        m_thread.join();
        for (const auto& gate : m_gates)
            gate->open(Gate::kForGood);
    }

    Result<std::uint64_t> submit(const Task& task, const DiskAfter& after, DiskTimes*) override
    {
        const std::lock_guard lock(m_mutex);
        const std::size_t lane = indexOf(task.lane);
        m_queues[lane].push_back(after);
        m_hasWork.notify_all();
        return ++m_submitted[lane];
    }
    Gate& gate(Lane lane) noexcept override { return *m_gates[indexOf(lane)]; }
    Status waitFor(Lane lane, std::uint64_t generation) override
    {
        while (!gate(lane).isOpen(generation) && !isDeadlocked())
            std::this_thread::sleep_for(kPause);
        return isDeadlocked() ? Status::error(ErrorKind::DeviceLost, "deadlock") : Status();
    }
    void drain() noexcept override {}

private:
    static constexpr std::size_t kLanesOfDisk = 4;
    static std::size_t indexOf(Lane lane)
    {
        return static_cast<std::size_t>(lane) - static_cast<std::size_t>(Lane::DiskIn);
    }

    void run()
    {
        while (waitForWork()) {
            for (std::size_t lane = 0; lane < kLanesOfDisk; ++lane)
                while (moveNext(lane)) {
                }
            std::this_thread::sleep_for(kPause);
        }
    }

    // False: it is to stop.
    bool waitForWork()
    {
        std::unique_lock lock(m_mutex);
        m_hasWork.wait(lock, [&] {
            return m_stops || std::any_of(m_queues.begin(), m_queues.end(),
                                  [](const auto& queue) { return !queue.empty(); });
        });
        return !m_stops;
    }

    bool moveNext(std::size_t lane)
    {
        DiskAfter after;
        {
            const std::lock_guard lock(m_mutex);
            if (m_queues[lane].empty())
                return false;
            after = m_queues[lane].front();
        }
        if (after.event && !after.event->done())
            return false;
        if (after.gate && !after.gate->isOpen(after.generation))
            return false;
        const std::lock_guard lock(m_mutex);
        m_queues[lane].pop_front();
        m_gates[lane]->open(++m_moved[lane]);
        return true;
    }

    std::array<std::unique_ptr<Gate>, kLanesOfDisk> m_gates;
    std::mutex m_mutex; // guards the queues and m_stops
    std::condition_variable m_hasWork;
    std::array<std::deque<DiskAfter>, kLanesOfDisk> m_queues;
    std::array<std::uint64_t, kLanesOfDisk> m_submitted{};
    std::array<std::uint64_t, kLanesOfDisk> m_moved{};
    bool m_stops = false;
    std::thread m_thread{[this] { run(); }};
};

// Groups of a published model; elements as in its config.
ModelShape shapeOf(const QString& model)
{
    struct Size {
        int blocks;
        std::int64_t perBlock;
        std::int64_t vocabulary; // of the embedding, and of the head
    };
    const std::map<QString, Size> sizes = {{"8B", {32, 218'112'000, 525'336'576}},
        {"14B", {48, 275'263'488, 778'567'680}}, {"32B", {64, 487'596'032, 778'567'680}},
        {"70B", {80, 855'654'400, 1'050'673'152}}};
    const Size size = sizes.at(model);
    ModelShape shape = smallShape(size.blocks);
    for (GroupShape& group : shape.groups)
        group.elements = size.perBlock / kCutElements * kCutElements;
    shape.groups.front().elements = shape.groups.back().elements =
        size.vocabulary / kCutElements * kCutElements;
    if (model == "8B") // windows split matrices by columns
        for (GroupShape& group : shape.groups)
            group.weights = {{0, group.elements / 4096, 4096, false}};
    return shape;
}

// As launchKernel(), of a kernel that this number names.
Status launch(std::uintptr_t kernel, Stream& stream)
{
    cudaLaunchConfig_t config{};
    config.stream = static_cast<gpu::CudaStream&>(stream).handle();
    gpu::countCommand();
    const cudaError_t code =
        cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), nullptr);
    return code == cudaSuccess ? Status() : Status::error(ErrorKind::DeviceLost, "launch");
}

int launchesOf(const StepPlan& plan, const Task& task)
{
    const bool isWork = task.kind == TaskKind::Forward || task.kind == TaskKind::Backward;
    if (isWork && task.group.value + 1 == static_cast<int>(plan.answers.size()))
        return kHeadCommands;
    switch (task.kind) {
    case TaskKind::Forward:
        return kForwardCommands;
    case TaskKind::Backward:
        return 2 * kForwardCommands;
    default:
        return 2; // two kernels, or a copy and its wait
    }
}

// Carries out plans with commands of the right number and order that do nothing.
class LaneRun
{
public:
    explicit LaneRun(GateLimits limits)
        : m_disk(m_device)
        , m_updater(std::make_unique<HostUpdater>(2, m_latch))
        , m_lanes(std::move(StepLanes::create(m_device, m_updater.get(), &m_disk, limits)).value())
    {
    }
    ~LaneRun()
    {
        m_disk.stop(); // its moves name events of the lanes, as jobs of the updater do
        m_updater.reset();
    }

    // Runs in which streams waited at gates.
    int laterRuns() const { return m_laterRuns; }

    Status carryOut(const StepPlan& plan)
    {
        MR_TRY(m_lanes->prepare(plan));
        m_lanes->start(plan);
        m_laterRuns += m_kinds.isEarly(plan, GateLimits{}.firstRuns) ? 0 : 1;
        for (TaskIndex i = 0; i < plan.tasks.size(); ++i)
            MR_TRY(enqueue(plan, i));
        return m_lanes->awaitAll(plan);
    }

private:
    Status enqueue(const StepPlan& plan, TaskIndex index)
    {
        const Task& task = plan.tasks[index];
        if (isDisk(task.lane))
            return m_lanes->submitToDisk(plan, index);
        if (task.lane == Lane::Host) {
            HostUpdateJob job;
            job.scalars = &m_scalars;
            return m_lanes->submitToHost(plan, index, job);
        }
        MR_TRY(m_lanes->begin(plan, index));
        for (int i = 0; i < launchesOf(plan, task); ++i) {
            // Each kind of task has kernels of its own; a head has others than a block.
            const bool isHead = task.group.value + 1 == static_cast<int>(plan.answers.size());
            const auto kernel = static_cast<std::uintptr_t>(
                1 + i % 50 + 100 * static_cast<int>(task.kind) + (isHead ? 50 : 0));
            MR_TRY(launch(kernel, m_lanes->stream(task.lane)));
        }
        return m_lanes->end(plan, index);
    }

    LaneDevice m_device;
    FailureLatch m_latch;
    StepScalars m_scalars;
    IdleDisk m_disk;
    std::unique_ptr<HostUpdater> m_updater;
    std::unique_ptr<StepLanes> m_lanes;
    PlanKinds m_kinds;
    int m_laterRuns = 0;
};

using Options = std::map<std::string, std::string>;

struct Configuration {
    const char* policy;
    Options options;
};

std::vector<Configuration> configurations(const std::string& clip, const std::string& tile)
{
    std::vector<Configuration> all = {{"resident", {}}, {"zero-offload", {}},
        {"zero-offload", {{"late", "1"}}}, {"deep-optimizer-states", {{"device-share", "0.1"}}},
        {"deep-optimizer-states", {{"device-share", "0.5"}}}, {"streamed", {}},
        {"streamed", {{"order", "by-layer"}, {"late", "0"}}}, {"ssd-vertical", {}},
        {"ssd-vertical",
            {{"weights-on-disk", "1"}, {"gradients-on-disk", "1"}, {"order", "by-layer"}}}};
    for (Configuration& each : all) {
        each.options["clip-mode"] = clip;
        if (std::string(each.policy) != "resident")
            each.options["tile"] = tile;
    }
    return all;
}

// Steps of a run; empty: all of them ended.
std::string failureOf(
    const ModelShape& shape, const Configuration& configuration, GateLimits limits, int steps)
{
    const OffloadPolicy policy = policyWith(configuration.policy, configuration.options);
    Carry carry = carryOf(0);
    LaneRun run(limits);
    for (int step = 1; step <= steps; ++step) {
        Result<BuiltStep> built =
            buildPlan(specOf(step, kMicroBatches), carry, shape, endless(), {}, policy);
        if (!built.ok())
            return built.status().message();
        if (const Status status = run.carryOut(built.value().plan); !status.ok())
            return status.message();
        carry = built.value().out;
    }
    return limits.firstRuns > 0 && run.laterRuns() == 0 ? "the host waited in every run" : "";
}

} // namespace

class TestGateDeadlock : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init() { restart(std::chrono::microseconds(0)); }
    void cleanup() { resetFakeCard(); }

    // Kernels that are loaded while a gate is closed.
    void lazyLoadingBehindAClosedGateDeadlocks()
    {
        restart(kLate);
        const Configuration eager{"zero-offload", {{"clip-mode", "per-group"}}};
        QVERIFY(!failureOf(smallShape(4), eager, kNoLimits, 1).empty());
        QVERIFY(isDeadlocked());
    }

    // Commands that no longer fit the queue while a gate is closed.
    void aFullQueueBehindAClosedGateDeadlocks()
    {
        restart(kLate);
        const Configuration exact{"zero-offload", {{"late", "0"}, {"tile", "16MiB"}}};
        const GateLimits loaded{2, kEndless, kEndless};
        QVERIFY(!failureOf(shapeOf("14B"), exact, loaded, 4).empty());
        QVERIFY(isDeadlocked());
    }

    void noPlanDeadlocksWithLimits_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("clip");
        for (const char* model : {"8B", "14B", "32B", "70B"})
            for (const char* clip : {"exact", "per-group"})
                QTest::addRow("%s %s", model, clip) << model << clip;
    }

    void noPlanDeadlocksWithLimits()
    {
        QFETCH(const QString, model);
        QFETCH(const QString, clip);
        const char* tile = model == "8B" ? "16MiB" : "64MiB";
        for (const Configuration& each : configurations(clip.toStdString(), tile)) {
            const std::string failure = failureOf(shapeOf(model), each, {}, 4);
            QVERIFY2(failure.empty() && !isDeadlocked(),
                (std::string(each.policy) + ": " + failure).c_str());
        }
    }

    void noWindowDeadlocksWithLimits()
    {
        for (const Configuration& each :
            {Configuration{"zero-offload-dpu", {{"tile", "16MiB"}, {"warmup", "1"}}},
                Configuration{
                    "zenflow", {{"tile", "16MiB"}, {"warmup", "1"}, {"interval", "2"}}}}) {
            const std::string failure = failureOf(shapeOf("8B"), each, {}, 12);
            QVERIFY2(failure.empty() && !isDeadlocked(),
                (std::string(each.policy) + ": " + failure).c_str());
        }
    }

private:
    static void restart(std::chrono::microseconds late)
    {
        resetFakeCard();
        startDriverModel(late);
    }
};

MR_TEST(TestGateDeadlock)

} // namespace mr::test::tst_gate_deadlock

#include "tst_gate_deadlock.moc"
