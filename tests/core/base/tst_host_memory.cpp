// Memory as the kernel reports it, limits of control groups, and the budget that follows.

#include "core/base/host_folder.h"
#include "core/base/host_memory.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_host_memory {

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kTotal = std::uint64_t{16'384'000} * 1024; // of kMemInfo
constexpr std::uint64_t kAvailable = std::uint64_t{8'192'000} * 1024;
constexpr const char* kGroups = "sys/fs/cgroup/";

// A machine on which this program is in the group user.slice/app.scope.
struct GroupedHost : HostFolder {
    GroupedHost()
    {
        writeBasics();
        write("proc/self/cgroup", "1:name=systemd:/old\n0::/user.slice/app.scope\n");
    }

    void limit(const std::string& group, const std::string& file, std::string_view text) const
    {
        write(kGroups + group + file, text);
    }
};

bool has(const std::string& text, const char* words)
{
    if (text.find(words) != std::string::npos)
        return true;
    qWarning("\"%s\" is not in: %s", words, text.c_str());
    return false;
}

} // namespace

class TestHostMemory : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aMachineWithoutLimitsHasItsMemory()
    {
        GroupedHost host;
        host.limit("user.slice/", "memory.max", "max\n");
        host.limit("user.slice/", "memory.high", "max\n");
        host.limit("user.slice/", "memory.current", "9000000000\n");

        const auto memory = readHostMemory(host.root());

        QCOMPARE(memory->totalBytes, kTotal);
        QCOMPARE(memory->availableBytes, kAvailable);
        QVERIFY(!memory->isLimited);
    }

    void aContainersLimitCounts()
    {
        HostFolder host; // its own group is the root of what it sees
        host.writeBasics();
        host.write("proc/self/cgroup", "0::/\n");
        host.write("sys/fs/cgroup/memory.max", "4000000000\n");
        host.write("sys/fs/cgroup/memory.current", "1500000000\n");

        const auto memory = readHostMemory(host.root());

        QCOMPARE(memory->totalBytes, std::uint64_t{4'000'000'000});
        QCOMPARE(memory->availableBytes, std::uint64_t{2'500'000'000});
        QVERIFY(memory->isLimited);
    }

    void theLowestLimitOfTheGroupsAroundCounts_data()
    {
        QTest::addColumn<QByteArray>("group");
        QTest::addColumn<QByteArray>("file");
        for (const char* group : {"user.slice/app.scope/", "user.slice/", ""})
            for (const char* file : {"memory.max", "memory.high"})
                QTest::addRow("%s%s", group, file) << QByteArray(group) << QByteArray(file);
    }

    void theLowestLimitOfTheGroupsAroundCounts()
    {
        QFETCH(const QByteArray, group);
        QFETCH(const QByteArray, file);
        GroupedHost host;
        for (const char* any : {"user.slice/app.scope/", "user.slice/", ""}) {
            host.limit(any, "memory.max", "7000000000\n");
            host.limit(any, "memory.current", "1000000000\n");
        }
        host.limit(group.toStdString(), file.toStdString(), "5000000000\n");

        const auto memory = readHostMemory(host.root());

        QCOMPARE(memory->totalBytes, std::uint64_t{5'000'000'000});
        QCOMPARE(memory->availableBytes, std::uint64_t{4'000'000'000});
    }

    void theGroupNextToOursDoesNotCount()
    {
        GroupedHost host;
        host.limit("user.slice/other.scope/", "memory.max", "1000000\n");

        QCOMPARE(readHostMemory(host.root())->totalBytes, kTotal);
    }

    void theCacheOfAGroupIsAvailable()
    {
        GroupedHost host;
        host.limit("user.slice/", "memory.max", "5000000000\n");
        host.limit("user.slice/", "memory.current", "4500000000\n");
        host.limit("user.slice/", "memory.stat",
            "anon 500000000\nfile 4000000000\ninactive_file 3000000000\nactive_file 500000000\n");

        QCOMPARE(readHostMemory(host.root())->availableBytes, std::uint64_t{4'000'000'000});
    }

    void whatTheMachineLacksNoLimitGives()
    {
        GroupedHost host;
        host.limit("user.slice/", "memory.max", "12000000000\n");
        host.limit("user.slice/", "memory.current", "5\n");
        QCOMPARE(readHostMemory(host.root())->availableBytes, kAvailable);
        host.limit("user.slice/", "memory.current", "13000000000\n"); // the limit came down later
        QCOMPARE(readHostMemory(host.root())->availableBytes, std::uint64_t{0});
    }

    void aMachineThatGrowsIsReadAgain()
    {
        GroupedHost host;
        QCOMPARE(readHostMemory(host.root())->totalBytes, kTotal);
        host.write("proc/meminfo", "MemTotal: 98566144 kB\nMemAvailable: 90000000 kB\n");

        const auto memory = readHostMemory(host.root());

        QCOMPARE(memory->totalBytes, 94 * kGiB);
        QCOMPARE(memory->availableBytes, std::uint64_t{90'000'000} * 1024);
    }

    void aMachineThatSaysNothingHasNoReading()
    {
        HostFolder host;
        QVERIFY(!readHostMemory(host.root()));
        host.write("proc/meminfo", "MemTotal: 98566144 kB\n");
        QVERIFY(!readHostMemory(host.root()));
    }

    void aChosenBudgetLeavesFourGiBOrAFifth()
    {
        QCOMPARE(defaultHostBudget(100 * kGiB), 100 * kGiB / 10 * 8);
        QCOMPARE(defaultHostBudget(8 * kGiB), 4 * kGiB);
        QCOMPARE(defaultHostBudget(4 * kGiB), kGiB);
        QCOMPARE(defaultHostBudget(0), std::uint64_t{0});
    }

    void whatDoesNotFitNamesTheMemoryAndTheOption()
    {
        QCOMPARE(hostMemoryWords({94 * kGiB, 60 * kGiB, false}),
            std::string("; this machine has 94.0 GiB of memory, 60.0 GiB of it available; "
                        "--host-memory gives another budget"));
        QVERIFY(has(hostMemoryWords({64 * kGiB, 60 * kGiB, true}),
            "the control group of this program may use 64.0 GiB of memory"));
        QVERIFY(hostMemoryWords({}).empty());
    }

    void aBudgetBeyondWhatIsAvailableIsBelievedWithASentence()
    {
        const HostMemory grows{94 * kGiB, 20 * kGiB, false};

        const std::string words = believedBudgetWords(100 * kGiB, 88 * kGiB, grows);

        QVERIFY(has(words, "budget of 100.0 GiB is believed: the run will hold 88.0 GiB"));
        QVERIFY(has(words, "this machine has 94.0 GiB of memory, 20.0 GiB of it available"));
        QVERIFY(has(words, "--host-memory"));
        QVERIFY(believedBudgetWords(100 * kGiB, 20 * kGiB, grows).empty()); // it is there
        QVERIFY(believedBudgetWords(80 * kGiB, 88 * kGiB, grows).empty());  // it does not fit
        QVERIFY(believedBudgetWords(100 * kGiB, 88 * kGiB, {}).empty());
    }
};

MR_TEST(TestHostMemory)

} // namespace mr::test::tst_host_memory

#include "tst_host_memory.moc"
