// A wait that a stream leaves out is a data race that the thread sanitizer reports.
//
// Each wait of a few steps in turn is left out, in a process of its own, because the sanitizer
// reports a race once. It is what makes "clean under the thread sanitizer" say something about the
// waits of a plan. Not every one can be reported in every run: whoever waits for a gate that has
// been opened further than he asks is ordered behind all of that, so a fast update hides the wait
// for the next one. Five in six were. (tests/core/plan/tst_plan_waits: the checker refuses every
// plan that lacks one.)

#include "core/device/cpu/cpu_device.h"
#include "core/engine/exact_check.h"
#include "support/wrapped_device.h"

#include <QtTest>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>

using namespace mr;

namespace {

constexpr int kRaceExitCode = 66; // of a process in which the thread sanitizer reported something

class ForgetfulDevice final : public test::WrappedDevice
{
public:
    ForgetfulDevice(Device& inner, int forgotten)
        : WrappedDevice(inner)
        , m_forgotten(forgotten)
    {
    }

    Status onCall(const test::DeviceCall& call) override
    {
        m_afterStream =
            call.what == "create stream" || (m_afterStream && call.what == "create event");
        return {};
    }
    bool leavesOut(const test::DeviceCall& call) override
    {
        return m_ends.count(call.event) == 0 && ++m_waits == m_forgotten;
    }
    int waits() const noexcept { return m_waits; }

protected:
    // What a stream's work ends with is made with the stream. Such a wait is none of the plan: the
    // caller waits for all lanes, and another wait of the step may have done it for him.
    void onEvent(const Event& event) override
    {
        if (m_afterStream)
            m_ends.insert(&event);
        m_afterStream = false;
    }

private:
    const int m_forgotten;
    int m_waits = 0;
    bool m_afterStream = false;
    std::set<const Event*> m_ends;
};

TinyRun runOf(const std::string& policy)
{
    TinyRun run;
    run.policy = policy;
    run.compute = DType::BF16;
    run.accumulate = 1;
    run.steps = policy == "streamed" ? 2 : 1; // late parts are of the step after
    if (policy == "zenflow")
        run.options = {{"interval", "1"}, {"warmup", "0"}, {"select", "0"}, {"overlap", "off"}};
    return run;
}

// How many waits there were; negative: it failed.
int train(const std::string& policy, int forgotten)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    options.threads = 1;
    options.mode = CpuDeviceOptions::Mode::Threaded;
    const auto device = std::move(makeCpuDevice(options)).value();
    ForgetfulDevice forgetful(*device, forgotten);
    const bool isOk = runTiny(forgetful, runOf(policy)).ok();
    return isOk ? forgetful.waits() : -1;
}

class TestMissingWait : public QObject
{
    Q_OBJECT

private slots:
    void waitsThatAreLeftOutAreRaces_data();
    void waitsThatAreLeftOutAreRaces();
};

void TestMissingWait::waitsThatAreLeftOutAreRaces_data()
{
    QTest::addColumn<QString>("policy");
    for (const char* policy : {"zero-offload", "deep-optimizer-states", "streamed", "zenflow"})
        QTest::newRow(policy) << QString::fromUtf8(policy);
}

void TestMissingWait::waitsThatAreLeftOutAreRaces()
{
    QFETCH(QString, policy);
    // All in other processes: the sanitizer lets none that has forked start threads.
    const auto trainApart = [&](int forgotten, QProcess& child) {
        child.start(QCoreApplication::applicationFilePath(),
            {QStringLiteral("--leave-out"), policy, QString::number(forgotten)});
        return child.waitForFinished(60'000);
    };
    QProcess whole;
    QVERIFY(trainApart(0, whole));
    QVERIFY2(whole.exitCode() == 0, whole.readAllStandardError().constData());
    const int waits = whole.readAllStandardOutput().trimmed().toInt();
    QVERIFY(waits > 5);
    QStringList unseen;
    for (int forgotten = 1; forgotten <= waits; ++forgotten) {
        QProcess child;
        QVERIFY(trainApart(forgotten, child));
        if (child.exitCode() != kRaceExitCode)
            unseen += QString::number(forgotten);
    }
    const QString report = QStringLiteral("of %1 waits not reported: %2")
                               .arg(waits)
                               .arg(unseen.join(QStringLiteral(", ")));
    qInfo("%s", qPrintable(report));
    QVERIFY2(3 * unseen.size() <= waits, qPrintable(report));
}

} // namespace

int main(int argc, char** argv)
{
    if (argc == 4 && std::string_view(argv[1]) == "--leave-out") {
        const int waits = train(argv[2], std::atoi(argv[3]));
        std::printf("%d\n", waits);
        return waits >= 0 ? 0 : 1;
    }
    const QCoreApplication application(argc, argv);
    TestMissingWait test;
    return QTest::qExec(&test, argc, argv);
}

#include "tst_missing_wait.moc"
