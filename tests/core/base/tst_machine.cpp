#include "core/base/cpu_features.h"
#include "support/test_room.h"

#include <millrace/library.h>

#include <QTest>

namespace mr::test::tst_machine {

class TestMachine : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void thisMachineHasPlausibleNumbers()
    {
        const MachineInfo info = inspectMachine();

        QVERIFY(!info.cpuName.empty());
        QVERIFY(info.physicalCores >= 1);
        QVERIFY(info.threads >= info.physicalCores);
        QVERIFY(info.memoryBytes > (std::uint64_t{1} << 28));
        QVERIFY(info.availableBytes > 0);
        QVERIFY(info.availableBytes <= info.memoryBytes);
        QVERIFY(info.diskFreeBytes > 0);
    }

    void theProcessorIsGoodEnoughAndHasAName()
    {
        QVERIFY(checkProcessor().ok());
        const std::string_view name = instructionSetName();
        QVERIFY(name == "avx2" || name == "avx512" || name == "avx512_bf16");
    }
};

MR_TEST(TestMachine)

} // namespace mr::test::tst_machine

#include "tst_machine.moc"
