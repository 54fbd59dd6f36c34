// Numbers in the text that the kernel writes.

#include "core/base/host_folder.h"
#include "core/base/kernel_files.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_kernel_files {

class TestKernelFiles : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aLineIsFoundByItsWholeName()
    {
        QCOMPARE(
            numberOfLine(kMemInfo, "MemAvailable", ':'), std::optional(std::uint64_t{8'192'000}));
        QCOMPARE(numberOfLine("anon 5\nactive_file 70\nfile 9\n", "file", ' '),
            std::optional(std::uint64_t{9}));
        QVERIFY(!numberOfLine(kMemInfo, "Mem", ':'));
        QVERIFY(!numberOfLine(kMemInfo, "Swap", ':'));
        QVERIFY(!numberOfLine("MemAvailable: many kB\n", "MemAvailable", ':'));
        QVERIFY(!numberOfLine("", "MemAvailable", ':'));
    }

    void aFileThatIsNotThereHasNoText()
    {
        HostFolder host;
        host.write("proc/number", " 42\n");
        host.write("proc/word", "max\n");

        QCOMPARE(readKernelNumber(host.root() / "proc/number"), std::optional(std::uint64_t{42}));
        QVERIFY(!readKernelNumber(host.root() / "proc/word"));
        QVERIFY(!readKernelNumber(host.root() / "proc/none"));
        QVERIFY(readKernelFile(host.root() / "proc/none").empty());
    }
};

MR_TEST(TestKernelFiles)

} // namespace mr::test::tst_kernel_files

#include "tst_kernel_files.moc"
