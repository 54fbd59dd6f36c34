// Names of kernels in machine code and in a profiler's records.

#include "gpu/kernel_name.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <string>

namespace mr::test::tst_kernel_name {

class TestKernelName : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void mangledNamesAreReadable_data()
    {
        QTest::addColumn<QString>("mangled");
        QTest::addColumn<QString>("readable");
        const auto add = [](const char* mangled, const char* readable) {
            QTest::newRow(readable)
                << QString::fromLatin1(mangled) << QString::fromLatin1(readable);
        };
        add("_ZN2mr3gpu45_GLOBAL__N__949f60c4_12_small_ops_cu_18c3922113rmsNormKernelINS0_"
            "4Bf16ELi8EEE"
            "vNS1_8NormRowsIT_EE",
            "rmsNormKernel<Bf16, 8>");
        add("_ZN2mr3gpu13elementKernelINS0_45_GLOBAL__N__949f60c4_12_small_ops_cu_18c3922112"
            "AccumulateOpINS0_4Bf16ELb0EEELi1ELi4EEEvT_l",
            "elementKernel<AccumulateOp<Bf16, false>, 1, 4>");
        add("_ZN2mr3gpu3sumEPKfl", "sum");
        add("nvjet_tst_128x256_64x4", "nvjet_tst_128x256_64x4");
        add("cutlass", "cutlass");
    }

    void mangledNamesAreReadable()
    {
        QFETCH(const QString, mangled);
        QFETCH(const QString, readable);

        QCOMPARE(QString::fromStdString(gpu::kernelNameOf(mangled.toStdString())), readable);
    }
};

MR_TEST(TestKernelName)

} // namespace mr::test::tst_kernel_name

#include "tst_kernel_name.moc"
