// Faults of a disk that holds a run's optimizer state: the run ends with the same bits, or with an
// error that says what, where and which way on.

#include "core/prove/plain_run.h"
#include "core/prove/tiny_device.h"
#include "core/tier/faulty_io.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mr::test::tst_ssd_faults {

namespace {

using Mode = CpuDeviceOptions::Mode;

constexpr const char* kFileName = "millrace-run-0.scratch";

// Any DiskIo; before the `nth` read, counted from 0, something is done to the file.
class ActingIo final : public DiskIo
{
public:
    ActingIo(std::unique_ptr<DiskIo> inner, int nth, std::function<void(const DiskRequest&)> act)
        : m_inner(std::move(inner))
        , m_left(nth)
        , m_act(std::move(act))
    {
    }

    std::string_view name() const noexcept override { return m_inner->name(); }
    std::size_t capacity() const noexcept override { return m_inner->capacity(); }
    int flush() noexcept override { return m_inner->flush(); }
    void wake() noexcept override { m_inner->wake(); }
    int reap(std::span<DiskCompletion> out, std::chrono::microseconds limit) noexcept override
    {
        return m_inner->reap(out, limit);
    }
    bool submit(const DiskRequest& request) noexcept override
    {
        if (request.op == DiskOp::Read && m_left-- == 0)
            m_act(request);
        return m_inner->submit(request);
    }

private:
    std::unique_ptr<DiskIo> m_inner;
    int m_left;
    std::function<void(const DiskRequest&)> m_act;
};

TinyRun ssdRun(const std::filesystem::path& folder)
{
    TinyRun run;
    run.policy = "ssd-vertical";
    run.options = {{"tile", "8KiB"}};
    run.compute = DType::BF16;
    run.steps = 3;
    run.disk.folders = {folder};
    run.disk.store.verify = DiskVerify::All;
    return run;
}

// Number of tiles, and of the requests before the first step reads one.
struct Requests {
    int tiles = 0;
    int reads = 0;
    int writes = 0;
};

FaultRule result(DiskOp op, int nth, std::int64_t value, int times = 1)
{
    return {FaultKind::Result, op, nth, value, times};
}

struct Case {
    const char* name;
    std::vector<FaultRule> rules; // `nth` counts the requests of steps
    const char* word;             // in the error; null: the bits are those of a healthy disk
    ErrorKind kind = ErrorKind::Io;
};

const std::vector<Case>& cases()
{
    constexpr DiskOp kRead = DiskOp::Read;
    constexpr DiskOp kWrite = DiskOp::Write;
    static const std::vector<Case> all = {
        {"first read fails", {result(kRead, 0, -EIO, 2)}, "smartctl"},
        {"read fails in a later step", {result(kRead, 40, -EIO, 2)}, "smartctl"},
        {"read fails once", {result(kRead, 3, -EIO)}, nullptr},
        {"first write fails", {result(kWrite, 0, -EIO)}, "smartctl"},
        {"write fails in a later step", {result(kWrite, 33, -EIO)}, "smartctl"},
        {"disk full", {result(kWrite, 2, -ENOSPC)}, "is full"},
        {"short reads",
            {{FaultKind::Short, kRead, 0, 4096, 1}, {FaultKind::Short, kRead, 5, 5000, 1},
                {FaultKind::Short, kRead, 21, 8192, 1}},
            nullptr},
        {"short writes",
            {{FaultKind::Short, kWrite, 0, 4096, 1}, {FaultKind::Short, kWrite, 20, 9000, 1}},
            nullptr},
        {"a read without progress", {{FaultKind::Short, kRead, 4, 100, 1}}, "only 100 bytes"},
        {"busy again and again",
            {result(kRead, 0, -EAGAIN, 8), result(kRead, 20, -EAGAIN, 8),
                result(kRead, 45, -EINTR, 20), result(kWrite, 0, -EAGAIN, 8),
                result(kWrite, 20, -EAGAIN, 3)}, // again ones are counted, too
            nullptr},
        {"busy for good", {result(kRead, 2, -EAGAIN, 9)}, "too busy 9 times"},
        {"a bit has turned", {{FaultKind::Flipped, kRead, 7, 0, 1}}, "not what was written",
            ErrorKind::DataCorrupt},
        {"a write is lost", {{FaultKind::Lost, kWrite, 3, 0, 1}}, "not what was written",
            ErrorKind::DataCorrupt},
        {"the means breaks", {{FaultKind::Broken, kRead, 0, -EBADR, 1}}, "broke"},
    };
    return all;
}

bool contains(const Status& status, const std::string& word)
{
    return status.message().find(word) != std::string::npos;
}

} // namespace

class TestSsdFaults : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void everyFaultEndsInTheSameBitsOrAClearError_data();
    void everyFaultEndsInTheSameBitsOrAClearError();
    void everyRegionThatFailsIsNamed_data();
    void everyRegionThatFailsIsNamed();
    void bytesThatChangeUnderTheRunAreSeen();
    void aFileThatIsCutIsNamedAsTheCause();
    void aFileThatIsDeletedServesToTheEnd();
    void aStepThatFailedIsNotDoneAndNothingGoesOn_data() { modeRows(); }
    void aStepThatFailedIsNotDoneAndNothingGoesOn();
    void withoutARingThreadsGiveTheSameBits();
    void aRefusalLeavesNoFile_data();
    void aRefusalLeavesNoFile();
    void aBudgetThatIsTooSmallSaysBothNumbers();

private:
    static void modeRows();
    TinyRun run() const { return ssdRun(m_folder.path().toStdString()); }
    TinyRun faulty(DiskFaults& faults, std::vector<FaultRule> rules) const;
    TinyRun acting(std::function<void(const DiskRequest&)> act) const;
    std::filesystem::path file() const
    {
        return std::filesystem::path(m_folder.path().toStdString()) / kFileName;
    }
    bool isEmpty() const { return std::filesystem::is_empty(m_folder.path().toStdString()); }

    QTemporaryDir m_folder;
    TinyResult m_healthy;
    Requests m_before;
};

// Wraps the store's engine; rules count from the first request of a step on.
TinyRun TestSsdFaults::faulty(DiskFaults& faults, std::vector<FaultRule> rules) const
{
    for (FaultRule& rule : rules)
        rule.nth += rule.op == DiskOp::Read ? m_before.reads : m_before.writes;
    faults.rules = std::move(rules);
    TinyRun run = this->run();
    run.disk.store.wrapIo = [&faults](std::unique_ptr<DiskIo> io) {
        return std::unique_ptr<DiskIo>(std::make_unique<FaultyIo>(std::move(io), faults));
    };
    return run;
}

// In the second step.
TinyRun TestSsdFaults::acting(std::function<void(const DiskRequest&)> act) const
{
    TinyRun run = this->run();
    const int nth = m_before.reads + m_before.tiles + 2;
    run.disk.store.wrapIo = [nth, act = std::move(act)](std::unique_ptr<DiskIo> io) {
        return std::unique_ptr<DiskIo>(std::make_unique<ActingIo>(std::move(io), nth, act));
    };
    return run;
}

void TestSsdFaults::modeRows()
{
    QTest::addColumn<Mode>("mode");
    QTest::newRow("threaded") << Mode::Threaded;
    QTest::newRow("inline") << Mode::Inline;
}

void TestSsdFaults::initTestCase()
{
    DiskFaults none;
    TinyRun before = faulty(none, {});
    before.steps = 1;
    auto one = runOn(Mode::Inline, before);
    QVERIFY2(one.ok(), one.status().message().c_str());
    // Step and flush read each tile once, and so do the weights that are looked at in the end.
    auto plan = PlainRun::plan(plainRunSpec(before));
    QVERIFY(plan.ok());
    const auto tiles = static_cast<int>(plan.value().disk.tiles.size());
    QVERIFY(tiles > 10);
    const auto count = [&](DiskOp op) {
        return static_cast<int>(std::ranges::count(none.seen, op, &DiskRequest::op));
    };
    m_before = {tiles, count(DiskOp::Read) - 2 * tiles, count(DiskOp::Write) - tiles};

    auto healthy = runOn(Mode::Inline, run());
    QVERIFY2(healthy.ok(), healthy.status().message().c_str());
    m_healthy = std::move(healthy).value();
    QVERIFY(isEmpty());
}

void TestSsdFaults::everyFaultEndsInTheSameBitsOrAClearError_data()
{
    QTest::addColumn<int>("index");
    QTest::addColumn<Mode>("mode");
    for (int i = 0; i < static_cast<int>(cases().size()); ++i) {
        const char* name = cases()[static_cast<std::size_t>(i)].name;
        QTest::addRow("%s, threaded", name) << i << Mode::Threaded;
        QTest::addRow("%s, inline", name) << i << Mode::Inline;
    }
}

void TestSsdFaults::everyFaultEndsInTheSameBitsOrAClearError()
{
    QFETCH(int, index);
    QFETCH(Mode, mode);
    const Case& c = cases()[static_cast<std::size_t>(index)];
    DiskFaults faults;
    const TinyRun run = faulty(faults, c.rules);

    auto result = runOn(mode, run);

    QVERIFY(isEmpty()); // the body is gone, and its file with it
    QCOMPARE(faults.inFlightAtEnd.load() > 0, c.rules[0].kind == FaultKind::Broken);
    if (!c.word) {
        QVERIFY2(result.ok(), result.status().message().c_str());
        QCOMPARE(result.value().weightsHash, m_healthy.weightsHash);
        QCOMPARE(result.value().losses, m_healthy.losses);
        return;
    }
    QVERIFY(!result.ok());
    const Status& status = result.status();
    QVERIFY2(status.kind() == c.kind, status.message().c_str());
    QVERIFY2(contains(status, c.word), status.message().c_str());
    QVERIFY2(contains(status, "Resume from the last one"), status.message().c_str());
    if (c.rules[0].kind == FaultKind::Broken)
        return; // it names no request
    QVERIFY2(contains(status, "tile 'layer "), status.message().c_str());
    QVERIFY2(contains(status, file().string()), status.message().c_str());
    QVERIFY2(contains(status, "at byte "), status.message().c_str());
}

void TestSsdFaults::everyRegionThatFailsIsNamed_data()
{
    QTest::addColumn<double>("clip");
    QTest::newRow("clipped") << 1.0;
    QTest::newRow("updates that follow their gradients") << 0.0; // late ones are on disk
}

// Weights and gradients on disk fail as state does: the run ends and names the lost region.
void TestSsdFaults::everyRegionThatFailsIsNamed()
{
    QFETCH(const double, clip);
    std::set<std::string> named;
    for (const DiskOp op : {DiskOp::Read, DiskOp::Write})
        for (int nth = 0; nth < 150; nth += 7) {
            DiskFaults faults;
            TinyRun run = faulty(faults, {result(op, nth, -EIO, 2)});
            run.clipNorm = clip;
            run.options.insert(
                {{"weights-on-disk", "1"}, {"gradients-on-disk", "1"}, {"late", "0.5"}});

            auto outcome = runOn(nth % 2 == 0 ? Mode::Threaded : Mode::Inline, run);

            QVERIFY(isEmpty());
            QVERIFY(!outcome.ok());
            QCOMPARE(outcome.status().kind(), ErrorKind::Io);
            QVERIFY2(contains(outcome.status(), "smartctl"), outcome.status().message().c_str());
            for (const char* region : {" state ", " weights ", " gradient "})
                if (contains(outcome.status(), region))
                    named.insert(
                        (op == DiskOp::Read ? "read of" : "write of") + std::string(region));
        }
    QCOMPARE(named.size(), std::size_t{6});
}

void TestSsdFaults::bytesThatChangeUnderTheRunAreSeen()
{
    const TinyRun run = acting([this](const DiskRequest& request) {
        std::fstream other(file(), std::ios::in | std::ios::out | std::ios::binary);
        other.seekp(static_cast<std::streamoff>(request.offset) + 777);
        other << "somebody else was here";
    });

    auto result = runOn(Mode::Threaded, run);

    QVERIFY(!result.ok());
    QCOMPARE(result.status().kind(), ErrorKind::DataCorrupt);
    QVERIFY2(contains(result.status(), "not what was written"), result.status().message().c_str());
    QVERIFY2(contains(result.status(), kFileName), result.status().message().c_str());
    QVERIFY(isEmpty());
}

void TestSsdFaults::aFileThatIsCutIsNamedAsTheCause()
{
    const TinyRun run = acting([this](const DiskRequest& request) {
        std::filesystem::resize_file(file(), request.offset);
    });

    auto result = runOn(Mode::Threaded, run);

    QVERIFY(!result.ok());
    QCOMPARE(result.status().kind(), ErrorKind::Io);
    for (const char* word : {"while the run used it", "ends before it", kFileName, "tile 'layer "})
        QVERIFY2(contains(result.status(), word), result.status().message().c_str());
    QVERIFY(isEmpty());
}

// Its bytes stay for as long as it is open.
void TestSsdFaults::aFileThatIsDeletedServesToTheEnd()
{
    bool wasThere = false;
    const TinyRun run =
        acting([&](const DiskRequest& /*request*/) { wasThere = std::filesystem::remove(file()); });

    auto result = runOn(Mode::Threaded, run);

    QVERIFY(wasThere);
    QVERIFY2(result.ok(), result.status().message().c_str());
    QCOMPARE(result.value().weightsHash, m_healthy.weightsHash);
}

void TestSsdFaults::aStepThatFailedIsNotDoneAndNothingGoesOn()
{
    QFETCH(Mode, mode);
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    options.mode = mode;
    const auto device = std::move(makeCpuDevice(options)).value();
    DiskFaults faults;
    TinyRun tiny = faulty(faults, {result(DiskOp::Write, 1, -EIO)});
    tiny.accumulate = 1;
    faults.rules[0].nth = m_before.tiles + 1; // before the first step all are written once
    auto created = PlainRun::create(*device, plainRunSpec(tiny));
    QVERIFY2(created.ok(), created.status().message().c_str());
    PlainRun& run = *created.value();
    MicroBatchData micro;
    const auto tokens = static_cast<std::size_t>(tiny.seqLen * tiny.microBatch);
    for (auto* each : {&micro.ids, &micro.targets, &micro.positions, &micro.visibleFrom})
        each->assign(tokens, 0);
    micro.order.resize(tokens);
    std::iota(micro.order.begin(), micro.order.end(), 0);
    StepInputs inputs;
    inputs.micros = {&micro, 1};
    inputs.factors = adamwFactors({}, 1e-3, 1);

    const auto first = run.step(inputs);
    const bool mayHaveChanged = run.executor().mayHaveChanged();
    const auto submitted = faults.submitted.load();
    const auto second = run.step(inputs);

    QVERIFY(!first.ok() && !second.ok());
    QCOMPARE(first.status().kind(), ErrorKind::Io);
    QVERIFY2(contains(first.status(), "disk write of tile"), first.status().message().c_str());
    QVERIFY(mayHaveChanged); // so nothing of it is saved
    QCOMPARE(second.status().message(), first.status().message());
    QCOMPARE(faults.submitted.load(), submitted);
    created.value().reset();
    QCOMPARE(faults.inFlightAtEnd.load(), 0);
    QVERIFY(isEmpty());
}

void TestSsdFaults::withoutARingThreadsGiveTheSameBits()
{
    TinyRun run = this->run();
    run.disk.store.uringCalls.setup = [](unsigned, io_uring*, io_uring_params*) { return -EPERM; };
    auto byThreads = runOn(Mode::Threaded, run);
    QVERIFY2(byThreads.ok(), byThreads.status().message().c_str());
    QCOMPARE(byThreads.value().weightsHash, m_healthy.weightsHash);

    run.disk.store.uringCalls = systemUringCalls();
    run.disk.store.uringCalls.registerBuffers = [](io_uring*, const iovec*, unsigned) {
        return -ENOMEM;
    };
    auto unregistered = runOn(Mode::Threaded, run);
    QVERIFY2(unregistered.ok(), unregistered.status().message().c_str());
    QCOMPARE(unregistered.value().weightsHash, m_healthy.weightsHash);
}

void TestSsdFaults::aRefusalLeavesNoFile_data()
{
    QTest::addColumn<QString>("what");
    QTest::addColumn<ErrorKind>("kind");
    QTest::addColumn<QString>("word");
    const auto row = [](const char* what, ErrorKind kind, const char* word) {
        QTest::newRow(what) << QString::fromUtf8(what) << kind << QString::fromUtf8(word);
    };
    row("no folder", ErrorKind::InvalidArgument, "--disk-path");
    row("a folder that is not there", ErrorKind::InvalidArgument, "nowhere");
    row("a file in place of a folder", ErrorKind::InvalidArgument, "a-file");
    row("a ring that is refused", ErrorKind::Io, "io_uring");
    row("cancelled", ErrorKind::Cancelled, "");
}

void TestSsdFaults::aRefusalLeavesNoFile()
{
    QFETCH(QString, what);
    QFETCH(ErrorKind, kind);
    QFETCH(QString, word);
    QTemporaryDir elsewhere;
    TinyRun run = this->run();
    if (what == QStringLiteral("no folder"))
        run.disk.folders.clear();
    if (what == QStringLiteral("a folder that is not there"))
        run.disk.folders = {elsewhere.path().toStdString() + "/nowhere"};
    if (what == QStringLiteral("a file in place of a folder")) {
        run.disk.folders = {elsewhere.path().toStdString() + "/a-file"};
        std::ofstream(run.disk.folders.front()) << "not a folder";
    }
    if (what == QStringLiteral("a ring that is refused")) {
        run.disk.store.engine = DiskEngine::Uring;
        run.disk.store.uringCalls.setup = [](unsigned, io_uring*, io_uring_params*) {
            return -EPERM;
        };
    }
    if (what == QStringLiteral("cancelled"))
        run.disk.scratch.cancelled = [] { return true; };

    auto result = runOn(Mode::Threaded, run);

    QVERIFY(!result.ok());
    QVERIFY2(result.status().kind() == kind, result.status().message().c_str());
    QVERIFY2(contains(result.status(), word.toStdString()), result.status().message().c_str());
    QVERIFY(isEmpty());
}

void TestSsdFaults::aBudgetThatIsTooSmallSaysBothNumbers()
{
    PlainRunSpec spec = plainRunSpec(run());
    auto planned = PlainRun::plan(spec);
    QVERIFY(planned.ok());
    const std::size_t needed = planned.value().bytes(Tier::Disk);

    spec.budget.diskBytes = needed;
    QVERIFY(PlainRun::plan(spec).ok());
    spec.budget.diskBytes = needed - 1;
    const Status status = PlainRun::plan(spec).status();

    QVERIFY(!status.ok());
    QCOMPARE(status.kind(), ErrorKind::OutOfMemory);
    QVERIFY2(contains(status, "disk space: the plan needs "), status.message().c_str());
}

MR_TEST_WITH_APP(TestSsdFaults)

} // namespace mr::test::tst_ssd_faults

#include "tst_ssd_faults.moc"
