// Rows of a run leave nothing out: steps and the intervals between them add up to its bytes and to
// its time, with evaluations and checkpoints in between.

#include "core/plan/policies.h"
#include "core/run/run_rig.h"
#include "core/telemetry/run_folder.h"
#include "core/tier/scratch_folder.h"
#include "support/test_room.h"
#include "support/wrapped_device.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace mr::test::tst_run_account {

namespace {

constexpr std::int64_t kPageBytes = 4096;
constexpr std::int64_t kFromTheFirst = std::numeric_limits<std::int64_t>::min();

// Counts copies where they are enqueued, by which side of the link their ends are on.
class LinkCounter final : public WrappedDevice
{
public:
    using WrappedDevice::WrappedDevice;

    Status onCall(const DeviceCall& call) override
    {
        if (call.what == "copy")
            copied += static_cast<std::int64_t>(call.number);
        return {};
    }

    std::int64_t copied = 0;
};

std::int64_t bytesReadFromDrives()
{
    std::ifstream file("/proc/self/io");
    std::string name;
    for (std::int64_t value = 0; file >> name >> value;)
        if (name == "read_bytes:")
            return value;
    return 0;
}

// tmpfs takes direct I/O, too, and the kernel counts no byte of it.
bool isOnDrive()
{
    auto folder = inspectScratchFolder(QDir::tempPath().toStdString());
    return folder.ok() && folder.value().place != ScratchPlace::Memory;
}

struct Sums {
    std::int64_t link = 0;
    std::int64_t diskRead = 0;
    std::int64_t diskWritten = 0;
    std::int64_t wallUs = 0;
};

struct Rows {
    std::vector<StepRow> steps;
    std::vector<IntervalRow> intervals;

    Sums sums() const
    {
        Sums sums;
        const auto add = [&](const auto& row, std::int64_t wallUs) {
            sums.link += row.h2dBytes + row.d2hBytes;
            sums.diskRead += row.diskReadBytes;
            sums.diskWritten += row.diskWriteBytes;
            sums.wallUs += wallUs;
        };
        for (const StepRow& row : steps)
            add(row, row.wallUs);
        for (const IntervalRow& row : intervals)
            add(row, row.endUs - row.beginUs);
        return sums;
    }

    Sums sumsOf(IntervalKind kind) const
    {
        Rows of;
        std::copy_if(intervals.begin(), intervals.end(), std::back_inserter(of.intervals),
            [kind](const IntervalRow& row) { return row.kind == kind; });
        return of.sums();
    }

    std::ptrdiff_t count(IntervalKind kind) const
    {
        return std::count_if(intervals.begin(), intervals.end(),
            [kind](const IntervalRow& row) { return row.kind == kind; });
    }
};

Rows rowsOf(const RunRig& rig, std::int64_t id)
{
    return {
        rig.steps(id), RunReader::open(rig.database).value()->intervals(id, kFromTheFirst).value()};
}

template <typename Row>
std::int64_t explainedUs(const Row& row)
{
    return std::accumulate(row.stallUs.begin(), row.stallUs.end(), row.computeUs);
}

} // namespace

class TestRunAccount : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyByteAndSecondBelongsToARow_data();
    void everyByteAndSecondBelongsToARow();
    void whatTheDiskReadIsWhatTheProcessRead();
    void aFlushIsARowOfItsOwn();
    void aFlushFromDiskIsBookedWhereItHappens();
    void aResumedRunGoesOnWithItsRows();
    void aHistoryIsRebuiltWithItsIntervals();

private:
    RunSpec lookedAt(const std::string& name, const std::string& policy);

    RunRig m_rig;
    Folder m_scratch;
};

// Evaluation and checkpoint at every step.
RunSpec TestRunAccount::lookedAt(const std::string& name, const std::string& policy)
{
    RunSpec spec = m_rig.spec(name);
    spec.policy = policy;
    spec.steps = 4;
    spec.evalEvery = 1;
    spec.holdOut = 0.2;
    spec.checkpointEvery = 1;
    spec.diskPaths = {m_scratch.path()};
    return spec;
}

void TestRunAccount::everyByteAndSecondBelongsToARow_data()
{
    QTest::addColumn<QString>("policy");
    QTest::addColumn<QString>("late");
    for (const PolicyInfo& policy : policyTable()) {
        const std::string name(policy.name);
        QTest::newRow(name.c_str()) << QString::fromStdString(name) << QString();
        if (name == "zero-offload" || name == "streamed" || name == "ssd-vertical")
            QTest::newRow((name + " late=1").c_str())
                << QString::fromStdString(name) << QStringLiteral("1");
    }
}

void TestRunAccount::everyByteAndSecondBelongsToARow()
{
    QFETCH(const QString, policy);
    QFETCH(const QString, late);
    RunSpec spec = lookedAt(QTest::currentDataTag(), policy.toStdString());
    if (!late.isEmpty())
        spec.policyOptions["late"] = late.toStdString();
    const auto cpu = smallDevice();
    LinkCounter device(*cpu);

    const Outcome run = m_rig.train(spec, device);

    QVERIFY2(run.opened.ok(), run.opened.message().c_str());
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    const Rows rows = rowsOf(m_rig, run.id);
    QCOMPARE(rows.steps.size(), std::size_t{4});
    QCOMPARE(rows.count(IntervalKind::Opening), 1);
    QCOMPARE(rows.count(IntervalKind::Evaluation), 5); // the model before training, too
    QCOMPARE(rows.count(IntervalKind::Checkpoint), 4);
    QCOMPARE(rows.count(IntervalKind::Export), 1);
    const Sums all = rows.sums();
    QCOMPARE(all.link, device.copied);
    for (const StepRow& row : rows.steps)
        QCOMPARE(explainedUs(row), row.wallUs);
    for (const IntervalRow& row : rows.intervals)
        QCOMPARE(explainedUs(row), row.endUs - row.beginUs);
    // Rows follow each other: their lengths are the time from the first to the last.
    const std::int64_t span = rows.intervals.back().endUs - rows.intervals.front().beginUs;
    QVERIFY2(std::abs(span - all.wallUs) * 100 <= span,
        qPrintable(QStringLiteral("%1 of %2 us").arg(all.wallUs).arg(span)));
    QCOMPARE(all.diskRead > 0, policy == "ssd-vertical");
    QCOMPARE(all.diskWritten > 0, policy == "ssd-vertical");
    QVERIFY(
        all.diskRead % kPageBytes == 0 && all.diskWritten % kPageBytes == 0); // padding is in it
}

// From the checkpoint of step 1 to that of step 3, by the kernel's count of bytes read from drives.
// Its count of bytes written includes checkpoints.
void TestRunAccount::whatTheDiskReadIsWhatTheProcessRead()
{
    RunSpec spec = lookedAt("reads", "ssd-vertical");
    spec.policyOptions = {{"late", "0.5"}, {"tile", "8KiB"}};
    const auto device = smallDevice();
    std::map<std::int64_t, std::int64_t> readBytes; // by step

    const Outcome run = m_rig.train(spec, *device,
        [&](Engine&, std::int64_t step) { readBytes[step] = bytesReadFromDrives(); });

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    if (!isOnDrive() || m_rig.messages(run.id).find("direct I/O") == std::string::npos)
        QSKIP("the temporary folder lies in memory, or takes no direct I/O");
    Rows rows = rowsOf(m_rig, run.id);
    const auto isOutside = [](const auto& row) { return row.step < 2 || row.step > 3; };
    std::erase_if(rows.steps, isOutside);
    std::erase_if(rows.intervals, isOutside);
    const std::int64_t booked = rows.sums().diskRead;
    const std::int64_t counted = readBytes[3] - readBytes[1];
    QVERIFY(booked > 0);
    QVERIFY2(std::abs(booked - counted) * 100 <= counted,
        qPrintable(QStringLiteral("%1 booked, %2 counted").arg(booked).arg(counted)));
}

// The late share of a step is either in the next step or in a flush.
void TestRunAccount::aFlushIsARowOfItsOwn()
{
    RunSpec spec = lookedAt("flush", "zero-offload");
    spec.policyOptions["late"] = "1";
    spec.checkpointEvery = 0;
    RunSpec unseen = spec;
    unseen.outDir = m_rig.folder.path("unseen");
    unseen.evalEvery = 0;
    const auto device = smallDevice();

    const Outcome looked = m_rig.train(spec, *device);
    const Outcome plain = m_rig.train(unseen, *device);

    QVERIFY(looked.ended.ok() && plain.ended.ok());
    QCOMPARE(looked.progress.weightsHash, plain.progress.weightsHash);
    const Rows rows = rowsOf(m_rig, looked.id);
    QCOMPARE(rows.count(IntervalKind::Flush), 4);
    const Rows steady = rowsOf(m_rig, plain.id);
    const std::int64_t uploaded = steady.steps[2].h2dBytes - rows.steps[2].h2dBytes;
    QVERIFY(uploaded > 0); // without evaluations a step uploads the bytes of the flush
    for (const IntervalRow& row : rows.intervals)
        if (row.kind == IntervalKind::Flush)
            QCOMPARE(row.h2dBytes, uploaded);
}

void TestRunAccount::aFlushFromDiskIsBookedWhereItHappens()
{
    RunSpec spec = lookedAt("disk-flush", "ssd-vertical");
    spec.policyOptions = {{"disk-share", "1"}, {"late", "1"}, {"tile", "8KiB"}};
    spec.checkpointEvery = 0;
    const auto device = smallDevice();

    const Outcome run = m_rig.train(spec, *device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    const Rows rows = rowsOf(m_rig, run.id);
    const Sums flushes = rows.sumsOf(IntervalKind::Flush);
    QVERIFY(flushes.diskRead > 0);
    QVERIFY(flushes.diskWritten > 0);
    QCOMPARE(rows.count(IntervalKind::Flush), 4);
    for (const StepRow& row : rows.steps)
        QCOMPARE(row.diskWriteBytes, std::int64_t{0}); // all updates are late ones
}

void TestRunAccount::aResumedRunGoesOnWithItsRows()
{
    RunSpec spec = lookedAt("resumed", "zero-offload");
    const auto device = smallDevice();
    QVERIFY(m_rig.train(spec, *device, stopAt(2)).ended.ok());

    const Outcome run = m_rig.resume(spec.outDir, *device);

    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    const Rows rows = rowsOf(m_rig, run.id);
    QCOMPARE(rows.count(IntervalKind::Opening), 2);
    QCOMPARE(rows.count(IntervalKind::Evaluation), 5);
    QCOMPARE(rows.count(IntervalKind::Checkpoint), 4);
}

void TestRunAccount::aHistoryIsRebuiltWithItsIntervals()
{
    const auto device = smallDevice();
    const Outcome run = m_rig.train(lookedAt("rebuilt", "streamed"), *device);
    QVERIFY(run.ended.ok());
    auto store = RunStore::open(m_rig.folder.path("other.db"));
    QVERIFY(store.ok());

    auto id = rebuildFromRunFolder(*store.value(), run.dir.string());

    QVERIFY2(id.ok(), id.status().message().c_str());
    const auto read = RunReader::open(m_rig.folder.path("other.db")).value();
    const auto there = read->intervals(id.value(), kFromTheFirst).value();
    const auto here = rowsOf(m_rig, run.id).intervals;
    QCOMPARE(there.size(), here.size());
    for (std::size_t i = 0; i < here.size(); ++i) {
        QCOMPARE(there[i].kind, here[i].kind);
        QCOMPARE(there[i].beginUs, here[i].beginUs);
        QCOMPARE(there[i].endUs, here[i].endUs);
        QCOMPARE(there[i].h2dBytes, here[i].h2dBytes);
        QCOMPARE(there[i].stallUs, here[i].stallUs);
    }
}

MR_TEST(TestRunAccount)

} // namespace mr::test::tst_run_account

#include "tst_run_account.moc"
