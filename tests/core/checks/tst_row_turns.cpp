// Turns of rows under each layout, the empty ones and those out of order.

#include "core/checks/row_turns.h"
#include "support/test_room.h"

namespace mr::test::tst_row_turns {
namespace {

Document chatOf(const QByteArray& messages)
{
    Document document;
    document.chat = ("{\"messages\":[" + messages + "]}").toStdString();
    return document;
}

QByteArray turn(const char* role, const char* content)
{
    return QByteArray("{\"role\":\"") + role + "\",\"content\":\"" + content + "\"}";
}

} // namespace

class TstRowTurns : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void conversationsAreJudged_data();
    void conversationsAreJudged();
    void pairsHaveTheirHistory();
    void textsAreOneTurn();
    void chatMlIsAConversation();
};

void TstRowTurns::conversationsAreJudged_data()
{
    QTest::addColumn<QByteArray>("messages");
    QTest::addColumn<QString>("empty");
    QTest::addColumn<QString>("order");
    const QByteArray system = turn("system", "be brief");
    const QByteArray user = turn("user", "why?");
    const QByteArray answer = turn("assistant", "so");
    const QByteArray call =
        R"({"role":"assistant","content":"","tool_calls":[{"function":{"name":"f"}}]})";
    const QByteArray result = turn("tool", "5");
    const QByteArray parts =
        R"({"role":"assistant","content":[{"type":"text","text":" "},{"type":"text","text":"a"}]})";

    const auto row = [](const char* name, const QByteArray& messages, const char* empty,
                         const char* order) {
        QTest::newRow(name) << messages << QString::fromLatin1(empty) << QString::fromLatin1(order);
    };
    row("good", system + "," + user + "," + answer, "", "");
    row("parts", user + "," + parts, "", "");
    row("tools", user + "," + call + "," + result + "," + result + "," + answer, "", "");
    row("empty question", turn("user", " \\n") + "," + answer, "a question is empty", "");
    row("empty answer", user + "," + turn("assistant", ""), "an answer is empty", "");
    row("answer first", answer + "," + user + "," + answer, "",
        "an answer stands before any question");
    row("two questions", user + "," + user + "," + answer, "", "two questions follow each other");
    row("two answers", user + "," + answer + "," + answer, "", "two answers follow each other");
    row("late system", user + "," + answer + "," + system, "",
        "a system text stands behind other turns");
    row("result without call", user + "," + result + "," + answer, "",
        "a tool's result stands behind no call");
    row("no answer", user + "," + answer + "," + user, "", "nothing answers the last turn");
    row("result at the end", user + "," + call + "," + result, "", "nothing answers the last turn");
    row("nothing", "", "", "");
}

void TstRowTurns::conversationsAreJudged()
{
    QFETCH(QByteArray, messages);
    QFETCH(QString, empty);
    QFETCH(QString, order);
    const std::vector<RowTurn> turns = turnsOf(chatOf(messages));
    QCOMPARE(QString::fromStdString(std::string(emptyTurn(turns))), empty);
    QCOMPARE(QString::fromStdString(std::string(wrongOrder(turns))), order);
}

void TstRowTurns::pairsHaveTheirHistory()
{
    Document document;
    document.isPair = true;
    document.system = "s";
    document.history = {{"q", ""}};
    document.prompt = "p";
    document.response = "r";
    const std::vector<RowTurn> turns = turnsOf(document);
    QCOMPARE(turns.size(), 5U);
    QCOMPARE(turns[0].role, TurnRole::System);
    QCOMPARE(turns[4].text, std::string("r"));
    QCOMPARE(emptyTurn(turns), std::string_view("an answer is empty"));
    QVERIFY(wrongOrder(turns).empty());
}

void TstRowTurns::textsAreOneTurn()
{
    Document document;
    document.text = "  \n";
    const std::vector<RowTurn> turns = turnsOf(document);
    QCOMPARE(turns.size(), 1U);
    QCOMPARE(emptyTurn(turns), std::string_view("the text is empty"));
    QVERIFY(wrongOrder(turns).empty());
}

void TstRowTurns::chatMlIsAConversation()
{
    Document document;
    document.text = "<|im_start|>assistant\nhello<|im_end|>\n";
    QCOMPARE(
        wrongOrder(turnsOf(document)), std::string_view("an answer stands before any question"));
}

MR_TEST(TstRowTurns)

} // namespace mr::test::tst_row_turns

#include "tst_row_turns.moc"
