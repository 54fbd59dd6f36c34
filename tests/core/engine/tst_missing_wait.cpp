// A wait that a stream leaves out is a data race that the thread sanitizer reports.
//
// Each wait of a few steps in turn is left out, in a process of its own, because the sanitizer
// reports a race once. It is what makes "clean under the thread sanitizer" say something about the
// waits of a plan. (tests/core/plan/tst_plan_waits: the checker refuses such a plan.)

#include "core/device/cpu/cpu_device.h"
#include "core/engine/exact_check.h"
#include "support/wrapped_device.h"

#include <QtTest>

#include <cstdlib>
#include <memory>

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

    Status onCall(const test::DeviceCall&) override { return {}; }
    bool leavesOut(const test::DeviceCall&) override { return ++m_waits == m_forgotten; }
    int waits() const noexcept { return m_waits; }

private:
    const int m_forgotten;
    int m_waits = 0;
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
    void everyWaitThatIsLeftOutIsARace_data();
    void everyWaitThatIsLeftOutIsARace();
};

void TestMissingWait::everyWaitThatIsLeftOutIsARace_data()
{
    QTest::addColumn<QString>("policy");
    for (const char* policy : {"zero-offload", "deep-optimizer-states", "streamed", "zenflow"})
        QTest::newRow(policy) << QString::fromUtf8(policy);
}

void TestMissingWait::everyWaitThatIsLeftOutIsARace()
{
    QFETCH(QString, policy);
    const int waits = train(policy.toStdString(), 0);
    QVERIFY(waits > 0);
    QStringList unseen;
    for (int forgotten = 0; forgotten <= waits; ++forgotten) {
        QProcess child;
        child.start(QCoreApplication::applicationFilePath(),
            {QStringLiteral("--leave-out"), policy, QString::number(forgotten)});
        QVERIFY(child.waitForFinished(60'000));
        if (forgotten == 0) {
            const QByteArray report = child.readAllStandardError();
            QVERIFY2(child.exitCode() == 0, report.constData());
        } else if (child.exitCode() != kRaceExitCode) {
            unseen += QString::number(forgotten);
        }
    }
    QVERIFY2(unseen.isEmpty(), qPrintable(QStringLiteral("of %1 waits not reported: %2")
                                              .arg(waits)
                                              .arg(unseen.join(QStringLiteral(", ")))));
}

} // namespace

int main(int argc, char** argv)
{
    if (argc == 4 && std::string_view(argv[1]) == "--leave-out")
        return train(argv[2], std::atoi(argv[3])) >= 0 ? 0 : 1;
    const QCoreApplication application(argc, argv);
    TestMissingWait test;
    return QTest::qExec(&test, argc, argv);
}

#include "tst_missing_wait.moc"
