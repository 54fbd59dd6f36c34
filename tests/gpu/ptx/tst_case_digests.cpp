// The file of bits that travels to a card, and which programs leave no bit open.

#include "gpu/ptx/case_digests.h"
#include "support/test_room.h"

#include <QObject>
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>
#include <fstream>
#include <string>

namespace mr::test::tst_case_digests {

using namespace mr::ptx;

namespace {

const CaseDigests kKept = {{"add f32 (7)", true, "0123456789abcdef", "0"},
    {"attention bf16 97 tokens", false, "00000000000000aa", "0.25"},
    {"attention bf16 97 tokens", false, "00000000000000bb", "0.5"}};

} // namespace

class TestCaseDigests : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void instructionsThatLeaveBitsOpenAreFound_data()
    {
        QTest::addColumn<QString>("op");
        QTest::addColumn<bool>("isOpen");
        for (const char* op : {"ex2.approx.ftz.f32", "rcp.approx.f32", "div.full.f32", "add.f32",
                 "mul.ftz.f32", "sub.bf16x2", "atom.global.add.f32", "red.global.add.f64",
                 "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"})
            QTest::addRow("%s", op) << QString::fromLatin1(op) << true;
        for (const char* op : {"add.rn.f32", "mul.rn.ftz.f32", "fma.rn.f32", "div.rn.f32",
                 "sqrt.rn.f32", "add.s64", "mul.lo.s32", "ld.global.f32", "cvt.rn.bf16x2.f32",
                 "atom.global.add.u32", "max.f32", "cp.async.cg.shared.global"})
            QTest::addRow("%s", op) << QString::fromLatin1(op) << false;
    }

    void instructionsThatLeaveBitsOpenAreFound()
    {
        QFETCH(const QString, op);
        QFETCH(const bool, isOpen);
        Program program;
        program.texts = {"mov.b32", op.toStdString(), "ret"};

        QCOMPARE(openInstruction(program), isOpen ? op.toStdString() : std::string());
    }

    void aFileIsReadAsItWasWritten()
    {
        const QTemporaryDir folder;
        const std::filesystem::path path = folder.filePath(QStringLiteral("d.txt")).toStdString();

        QVERIFY(writeDigests(path, kKept).ok());
        auto read = readDigests(path);

        QVERIFY2(read.ok(), read.status().message().c_str());
        QCOMPARE(newDigests(read.value(), kKept), std::string());
        QCOMPARE(newDigests(kKept, read.value()), std::string());
        QCOMPARE(read.value().begin()->error, std::string("0"));
    }

    void otherBitsAndOtherKindsAreNew()
    {
        QCOMPARE(newDigests(kKept, {{"add f32 (7)", true, "00000000000000cc", "0"}}),
            std::string("add f32 (7)\texact\t00000000000000cc\t0\n"));
        QCOMPARE(newDigests(kKept, {{"add f32 (7)", false, "0123456789abcdef", "0"}}),
            std::string("add f32 (7)\tnear\t0123456789abcdef\t0\n"));
        QCOMPARE(newDigests(kKept, {{"attention bf16 97 tokens", false, "00000000000000bb", ""}}),
            std::string());
    }

    void exactCasesMustAgreeOnAllArchitectures()
    {
        QCOMPARE(disagreements(kKept), std::string()); // near ones need not

        CaseDigests more = kKept;
        more.insert({"add f32 (7)", true, "00000000000000cc", "0"});

        QCOMPARE(disagreements(more), std::string("add f32 (7)\n"));
    }

    void aLineThatIsNoCaseIsAnError()
    {
        const QTemporaryDir folder;
        const std::filesystem::path path = folder.filePath(QStringLiteral("d.txt")).toStdString();
        std::ofstream(path) << "# head\nadd f32 (7)\texact\t01\n";

        auto read = readDigests(path);

        QVERIFY(!read.ok());
        QVERIFY(read.status().message().find("is not a case and its bits") != std::string::npos);
    }
};

MR_TEST(TestCaseDigests)

} // namespace mr::test::tst_case_digests

#include "tst_case_digests.moc"
