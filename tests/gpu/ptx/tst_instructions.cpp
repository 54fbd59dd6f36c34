// Each instruction of one lane against written bits, under a full warp and under some lanes.

#include "gpu/ptx/instruction_cases.h"
#include "gpu/ptx/instruction_table.h"
#include "gpu/ptx/snippet.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <cstring>
#include <set>
#include <string>

namespace mr::test::tst_instructions {

using namespace mr::ptx;

namespace {

std::string loadOf(char letter, const std::string& name, std::size_t offset)
{
    const std::string address = "[%in+" + std::to_string(offset) + "];\n";
    switch (letter) {
    case 'h':
        return "ld.global.u16 " + name + ", " + address;
    case 'r':
        return "ld.global.u32 " + name + ", " + address;
    case 'f':
        return "ld.global.f32 " + name + ", " + address;
    case 'p':
        return "ld.global.u32 %r60, " + address + "setp.ne.s32 " + name + ", %r60, 0;\n";
    case 'e':
        return "ld.global.f64 " + name + ", " + address;
    default:
        return "ld.global.u64 " + name + ", " + address;
    }
}

std::string registerOf(char letter, std::size_t number)
{
    return std::string("%") + letter + std::to_string(number);
}

// Lane l writes its result to element l; `guard` keeps lanes out.
std::string bodyOf(const InstructionCase& row, const std::string& guard)
{
    std::string body = "mov.u32 %r61, %tid.x;\nsetp.lt.s32 %p15, %r61, 20;\n"
                       "mul.wide.s32 %d60, %r61, 8;\nadd.s64 %d61, %out, %d60;\n";
    std::string names;
    for (std::size_t i = 0; i < row.operands.size(); ++i) {
        const std::string name = registerOf(row.operands[i], i + 1);
        body += loadOf(row.operands[i], name, 8 * i);
        names += ", " + name;
    }
    const std::string result = registerOf(row.result, 40);
    const std::string written = row.result == 'p' ? "%p14" : result;
    body += guard + row.op + " " + written + names + ";\n";
    if (row.result == 'p')
        return body + guard + "selp.u64 %d40, 1, 0, %p14;\n" + guard +
               "st.global.u64 [%d61], %d40;\n";
    const std::string type = row.result == 'h'                        ? "u16"
                             : row.result == 'r' || row.result == 'f' ? "u32"
                                                                      : "u64";
    return body + guard + "st.global." + type + " [%d61], " + result + ";\n";
}

} // namespace

class TestInstructions : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void eachGivesItsBits_data()
    {
        QTest::addColumn<int>("row");
        for (std::size_t i = 0; i < instructionCases().size(); ++i)
            QTest::addRow("%s, %zu", instructionCases()[i].op.c_str(), i) << static_cast<int>(i);
    }

    void eachGivesItsBits()
    {
        QFETCH(const int, row);
        const InstructionCase& line = instructionCases()[static_cast<std::size_t>(row)];
        std::vector<std::byte> in(64);
        std::memcpy(in.data(), line.values.data(), line.values.size() * sizeof(std::uint64_t));
        for (const std::string guard : {"", "@%p15 "}) {
            std::vector<std::byte> out(32 * 8);
            Snippet snippet;
            snippet.body = bodyOf(line, guard);
            const Status status = runSnippet(snippet, in, out);
            QVERIFY2(status.ok(), status.message().c_str());
            for (std::size_t lane = 0; lane < 32; ++lane) {
                std::uint64_t bits = 0;
                std::memcpy(&bits, out.data() + 8 * lane, sizeof bits);
                QCOMPARE(bits, guard.empty() || lane < 20 ? line.expected : std::uint64_t{0});
            }
        }
    }

    void anUnknownInstructionIsNamed()
    {
        Snippet snippet;
        snippet.body = "tanh.approx.f32 %f1, %f2;";
        std::vector<std::byte> out(8);
        const Status status = runSnippet(snippet, out, out);
        QVERIFY(!status.ok());
        QCOMPARE(QString::fromStdString(status.message()),
            QString("line 16: tanh.approx.f32: not known"));
    }

    void everyInstructionOfTheTableHasACase()
    {
        const std::string missing = withoutUnitCase("instructions", instructionsRun());
        QVERIFY2(missing.empty(), missing.c_str());
    }
};

MR_TEST(TestInstructions)

} // namespace mr::test::tst_instructions

#include "tst_instructions.moc"
