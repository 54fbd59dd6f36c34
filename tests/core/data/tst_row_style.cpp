// Pairs and ChatML texts through the model's chat template or as they stand, and answers that do
// not count.

#include "core/data/chat_case.h"
#include "core/data/columns.h"
#include "support/test_room.h"

#include <millrace/library.h>

namespace mr::test::tst_row_style {

namespace {

const char* const kPair = R"({"instruction":"a","input":"i","output":"b"})"
                          "\n";
const std::string kPairByTemplate =
    "[|im_start|]user~a~i[|im_end|]~[|im_start|]assistant~{b[|im_end|]}~|";
const std::string kPairPlain = "[s]a~i~{b[/s]}|";

const std::string kShortPair = "[|im_start|]user~a[|im_end|]~[|im_start|]assistant~{b[|im_end|]}~|";

std::string textRow(const std::string& text)
{
    return Json{{"text", text}}.dump() + "\n";
}

std::string chatMl(const std::string& role, const std::string& content)
{
    return "<|im_start|>" + role + "\n" + content + "<|im_end|>\n";
}

// A model without a template.
void removeTemplate(const Case& chat)
{
    chat.folder.write("tokenizer_config.json", R"({"bos_token":"<s>"})");
}

Json weighted(const char* role, const char* content, const Json& weight)
{
    return {{"role", role}, {"content", content}, {"weight", weight}};
}

} // namespace

class TstRowStyle : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void pairsGoThroughTheTemplateOfAModelThatHasOne();
    void pairsStandAsTheyAreWhereThatIsAskedOrThereIsNoTemplate();
    void controlTokensInPairsStayText();
    void pairWithoutAnswerIsCountedAsEmpty();
    void pairsThatTheTemplateCannotWriteNameTheirLine();
    void styleIsOneOfTwoWordsAndNoColumn();
    void chatMlTextsAreConversations();
    void chatMlStaysTextWhereThatIsAskedOrThereIsNoTemplate();
    void chatMlFileMayHoldSeveralConversations();
    void controlTokensInChatMlContentStayText();
    void badChatMlNamesLineAndMessage_data();
    void badChatMlNamesLineAndMessage();
    void answersOfNoWeightAreWrittenAndNotTrained();
    void weightsCountForTemplatesThatMarkTheirTurns();
    void weightsCountWhereTurnsAreSequencesOfTheirOwn();
    void weightsBetweenAreRefused();
    void plainRunsOfOldIgnoreWeights();
    void inspectionTellsTheStyle();
    void systemTextOfAPairIsTheSystemTurn();
    void systemTextGoesIntoTheQuestionWhereThereIsNoTurnForIt_data();
    void systemTextGoesIntoTheQuestionWhereThereIsNoTurnForIt();
    void historyIsEarlierTurns();
    void badHistoryNamesLineAndColumn();
    void sidesMayBeListsOfMessages();
    void messagesMayStandInATextColumn();
    void conversationsWithoutAnswerAreCounted();
};

void TstRowStyle::pairsGoThroughTheTemplateOfAModelThatHasOne()
{
    const Case chat(kChatMl);
    QCOMPARE(shown(chat.build(kPair)), kPairByTemplate);
    QCOMPARE(shown(chat.build("p.jsonl", kPair, "template")), kPairByTemplate);
    QCOMPARE(shown(chat.build(R"({"prompt":"a","response":"b"})")),
        std::string("[|im_start|]user~a[|im_end|]~[|im_start|]assistant~{b[|im_end|]}~|"));
}

void TstRowStyle::pairsStandAsTheyAreWhereThatIsAskedOrThereIsNoTemplate()
{
    Case chat(kChatMl);
    QCOMPARE(shown(chat.build("p.jsonl", kPair, "plain")), kPairPlain);
    chat.options.specials = false; // blocks of raw text
    QVERIFY(!contains(shown(chat.build(kPair)) + " ", "[|im_start|]"));
    chat.options.specials = true;
    removeTemplate(chat);
    QCOMPARE(shown(chat.build(kPair)), kPairPlain);
    const Result<TokenSet> asked = chat.build("p.jsonl", kPair, "template");
    QVERIFY(contains(asked.status().message(), "has no chat template"));
}

void TstRowStyle::controlTokensInPairsStayText()
{
    const Case chat(kChatMl);
    QCOMPARE(shown(chat.build(R"({"prompt":"<|im_end|>","response":"</s>"})")),
        std::string("[|im_start|]user~<|im_end|>[|im_end|]~"
                    "[|im_start|]assistant~{</s>[|im_end|]}~|"));
}

void TstRowStyle::pairWithoutAnswerIsCountedAsEmpty()
{
    const Case chat(kChatMl);
    Result<TokenSet> set =
        chat.build(std::string(R"({"instruction":"a","input":"","output":""})") + "\n" + kPair);
    QVERIFY(set.ok());
    QCOMPARE(set.value().rows, 2U);
    QCOMPARE(set.value().emptyRows, 1U);
    QCOMPARE(set.value().count(), 1);
}

void TstRowStyle::pairsThatTheTemplateCannotWriteNameTheirLine()
{
    const Case strict("{% for m in messages %}{{ raise_exception('not this one') "
                      "if m.content == 'z' else m.content }}{% endfor %}");
    const std::string error = strict.error(R"({"prompt":"z","response":"b"})");
    QVERIFY(contains(error, "chat.jsonl, line 1: "));
    QVERIFY(contains(error, "not this one"));
}

void TstRowStyle::styleIsOneOfTwoWordsAndNoColumn()
{
    const Case chat(kChatMl);
    const Result<TokenSet> wrong = chat.build("p.jsonl", kPair, "fancy");
    QVERIFY(contains(wrong.status().message(), "style=fancy is not known"));
    DataSource source{"p.jsonl", DataFormat::Auto, {{"style", "plain"}, {"text", "body"}}};
    QCOMPARE(columnsAsked(source).size(), std::size_t{1});
    settleStyle(source, RowStyle::Template);
    QCOMPARE(source.columns["style"], std::string("plain")); // a given style stays
    source.columns.clear();
    settleStyle(source, RowStyle::Template);
    QCOMPARE(source.columns["style"], std::string("template"));
}

void TstRowStyle::chatMlTextsAreConversations()
{
    const Case chat(std::string("{{ bos_token }}") + kChatMl);
    const std::string wanted = "[s][|im_start|]system~s[|im_end|]~[|im_start|]user~a~a[|im_end|]~"
                               "[|im_start|]assistant~{b[|im_end|]}~|";
    const std::string text =
        chatMl("system", "s") + chatMl("user", "a\na") + chatMl("assistant", "b");
    QCOMPARE(shown(chat.build(textRow(text))), wanted);
    QCOMPARE(shown(chat.build(textRow("\n <|endoftext|>" + text + "<|endoftext|>"))), wanted);
    QCOMPARE(shown(chat.build("chat.txt", text)), wanted);
}

void TstRowStyle::chatMlStaysTextWhereThatIsAskedOrThereIsNoTemplate()
{
    const Case chat(kChatMl);
    const std::string text = chatMl("user", "a") + chatMl("assistant", "b");
    const std::string wanted = "[s]{<|im_start|>user~a<|im_end|>~<|im_start|>assistant~b"
                               "<|im_end|>~[/s]}|";
    QCOMPARE(shown(chat.build("t.jsonl", textRow(text), "plain")), wanted);
    QCOMPARE(shown(chat.build("t.txt", text, "plain")), wanted);
    QVERIFY(shown(chat.build(textRow("He wrote " + text))).starts_with("[s]{He wrote <|im_start"));
    removeTemplate(chat);
    QCOMPARE(shown(chat.build(textRow(text))), wanted);
}

void TstRowStyle::chatMlFileMayHoldSeveralConversations()
{
    const Case chat(kChatMl);
    const std::string one = chatMl("user", "a") + chatMl("assistant", "b");
    const std::string shownOne =
        "[|im_start|]user~a[|im_end|]~[|im_start|]assistant~{b[|im_end|]}~|";
    Result<TokenSet> set = chat.build(
        "chat.txt", one + "<|endoftext|>\n" + one + "\n\n" + chatMl("system", "s") + one);
    QVERIFY(set.ok());
    QCOMPARE(set.value().rows, 3U);
    QCOMPARE(shown(set), shownOne + shownOne + "[|im_start|]system~s[|im_end|]~" + shownOne);
}

void TstRowStyle::controlTokensInChatMlContentStayText()
{
    const Case chat(kChatMl);
    const std::string text = chatMl("user", "</s>") + chatMl("assistant", "<s>");
    QCOMPARE(shown(chat.build(textRow(text))),
        std::string("[|im_start|]user~</s>[|im_end|]~[|im_start|]assistant~{<s>[|im_end|]}~|"));
}

void TstRowStyle::badChatMlNamesLineAndMessage_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("message");
    const QString user = QStringLiteral("<|im_start|>user\na<|im_end|>\n");
    const QString answer = QStringLiteral("<|im_start|>assistant\nb<|im_end|>\n");
    const auto add = [](const char* name, const QString& text, const char* message) {
        QTest::newRow(name) << text << QString::fromUtf8(message);
    };
    add("not ended", user + QStringLiteral("<|im_start|>assistant\nb"),
        "message 2 of the ChatML text has no <|im_end|>");
    add("begins twice", QStringLiteral("<|im_start|>user\na\n<|im_start|>assistant\nb<|im_end|>\n"),
        "message 1 of the ChatML text has a second <|im_start|>");
    add("words between", user + QStringLiteral("so: ") + answer,
        "message 2 of the ChatML text should begin with <|im_start|>, but \"so: <|im_start|>");
    add("ended twice", user + QStringLiteral("<|im_end|>"), "but \"<|im_end|>\" stands there");
    add("no role", QStringLiteral("<|im_start|>user a<|im_end|>\n") + answer,
        "message 1 of the ChatML text has no line feed behind its role");
    add("wrong role", QStringLiteral("<|im_start|>narrator\na<|im_end|>\n") + answer,
        "message 1 of the conversation has the role \"narrator\"");
    add("not cut in a character", user + QStringLiteral("あいうえおかきくけこ"),
        "but \"あいうえおかきく\" stands there");
}

void TstRowStyle::badChatMlNamesLineAndMessage()
{
    QFETCH(QString, text);
    QFETCH(QString, message);
    const Case chat(kChatMl);
    const std::string good = textRow(chatMl("user", "a") + chatMl("assistant", "b"));
    const std::string error = chat.error(good + textRow(text.toStdString()));
    QVERIFY(contains(error, "chat.jsonl, line 2: "));
    QVERIFY(contains(error, message.toStdString()));
}

void TstRowStyle::answersOfNoWeightAreWrittenAndNotTrained()
{
    const Case chat(kChatMl);
    const std::string first = row({weighted("user", "a", 0), weighted("assistant", "b", 0),
        message("user", "c"), weighted("assistant", "d", 1)});
    QCOMPARE(shown(chat.build(first)),
        std::string("[|im_start|]user~a[|im_end|]~[|im_start|]assistant~b[|im_end|]~"
                    "[|im_start|]user~c[|im_end|]~[|im_start|]assistant~{d[|im_end|]}~|"));
    Json other = weighted("assistant", "d", 0);
    other["loss_weight"] = 0.0;
    other.erase("weight");
    const std::string last =
        row({message("user", "a"), message("assistant", "b"), message("user", "c"), other});
    QVERIFY(contains(shown(chat.build(last)), "{b[|im_end|]}~[|im_start|]user~c"));
    QVERIFY(contains(shown(chat.build(last)), "assistant~d[|im_end|]~|"));
    Result<TokenSet> none =
        chat.build(row({message("user", "a"), weighted("assistant", "b", false)}));
    QVERIFY(none.ok());
    QCOMPARE(none.value().emptyRows, 1U);
}

void TstRowStyle::weightsCountForTemplatesThatMarkTheirTurns()
{
    const Case chat("{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}"
                    "{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %};"
                    "{% endfor %}");
    QCOMPARE(shown(chat.build(row({message("user", "a"), weighted("assistant", "b", 0),
                 message("user", "c"), message("assistant", "d")}))),
        std::string("a;b;c;{d};|"));
    const Case once("{% for m in messages %}{% if loop.last %}{% generation %}{{ m.content }}"
                    "{% endgeneration %}{% else %}{{ m.content }}{% endif %};{% endfor %}");
    QVERIFY(contains(once.error(row({message("user", "a"), weighted("assistant", "b", 0),
                         message("user", "c"), message("assistant", "d")})),
        "marks 1 spans for 2 answers"));
}

void TstRowStyle::weightsCountWhereTurnsAreSequencesOfTheirOwn()
{
    const Case chat(
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + (m.content if loop.last "
        "else m.content.split('</think>')[-1]) + '<|im_end|>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}");
    const char* const thinks = "<think>x</think>b";
    const auto of = [&](int first, int second) {
        return shown(chat.build(row({message("user", "a"), weighted("assistant", thinks, first),
            message("user", "c"), weighted("assistant", "d", second)})));
    };
    QCOMPARE(of(1, 0), std::string("[|im_start|]user~a[|im_end|][|im_start|]assistant~"
                                   "{<think>x</think>b[|im_end|]}|"));
    QCOMPARE(of(0, 1), std::string("[|im_start|]user~a[|im_end|][|im_start|]assistant~b[|im_end|]"
                                   "[|im_start|]user~c[|im_end|][|im_start|]assistant~"
                                   "{d[|im_end|]}|"));
}

void TstRowStyle::weightsBetweenAreRefused()
{
    const Case chat(kChatMl);
    for (const Json& weight : {Json(0.5), Json(2), Json("1"), Json(-1)})
        QVERIFY(
            contains(chat.error(row({message("user", "a"), weighted("assistant", "b", weight)})),
                "message 2 of the conversation has the weight " + weight.dump()));
}

void TstRowStyle::plainRunsOfOldIgnoreWeights()
{
    const Case chat(kChatMl);
    const std::string data = row({message("user", "a"), weighted("assistant", "b", 0)});
    QVERIFY(contains(shown(chat.build("chat.jsonl", data, "plain")), "{b[|im_end|]}"));
}

void TstRowStyle::inspectionTellsTheStyle()
{
    const Case chat(kChatMl);
    DataSource source{chat.folder.write("p.jsonl", kPair), DataFormat::Auto, {}};
    QCOMPARE(inspectDataset(source, chat.folder.path(), 64, 1).value().mapping["style"],
        std::string("template"));
    source.columns["style"] = "plain";
    QCOMPARE(inspectDataset(source, chat.folder.path(), 64, 1).value().mapping["style"],
        std::string("plain"));
    QCOMPARE(inspectDataset(source, "", 64, 1).value().mapping.count("style"), std::size_t{0});
    removeTemplate(chat);
    QCOMPARE(inspectDataset(source, chat.folder.path(), 64, 1).value().mapping.count("style"),
        std::size_t{0});
}

void TstRowStyle::systemTextOfAPairIsTheSystemTurn()
{
    Case chat(kChatMl);
    for (const char* name : {"system", "System_Prompt", "system_message"}) {
        const std::string one = R"({"instruction":"a","output":"b",")" + std::string(name) + "\":";
        QCOMPARE(shown(chat.build(one + "\"s\"}\n" + one + "null}\n" + one + "\"\"}\n")),
            "[|im_start|]system~s[|im_end|]~" + kShortPair + kShortPair + kShortPair);
    }
    QCOMPARE(shown(chat.build("p.jsonl", R"({"prompt":"a","response":"b","system":"s"})", "plain")),
        std::string("[s]s~a~{b[/s]}|"));
    const DataSource mapped{chat.folder.write("m.jsonl", R"({"x":"a","y":"b","z":"s"})"),
        DataFormat::Auto, {{"prompt", "x"}, {"response", "y"}, {"system", "z"}}};
    QCOMPARE(shown(buildTokenSet({mapped}, ByteTokenizer(), chat.options)),
        "[|im_start|]system~s[|im_end|]~" + kShortPair);
}

void TstRowStyle::systemTextGoesIntoTheQuestionWhereThereIsNoTurnForIt_data()
{
    QTest::addColumn<QString>("begin");
    QTest::newRow("refused") << QStringLiteral("{% for m in messages %}{% if m.role == 'system' "
                                               "%}{{ raise_exception('none') }}{% endif %}");
    QTest::newRow("left out") << QStringLiteral("{% for m in messages if m.role != 'system' %}");
}

void TstRowStyle::systemTextGoesIntoTheQuestionWhereThereIsNoTurnForIt()
{
    QFETCH(QString, begin);
    const Case chat(begin.toStdString() +
                    std::string(kChatMl).substr(std::string("{% for m in messages %}").size()));
    QCOMPARE(shown(chat.build(R"({"prompt":"a","response":"b","system":"s"})")),
        std::string("[|im_start|]user~s~a[|im_end|]~[|im_start|]assistant~{b[|im_end|]}~|"));
}

void TstRowStyle::historyIsEarlierTurns()
{
    const Case chat(kChatMl);
    const std::string data = R"({"instruction":"a","output":"b","history":[["c","d"],["e","f"]]})"
                             "\n"
                             R"({"instruction":"a","output":"b","history":[]})"
                             "\n"
                             R"({"instruction":"a","output":"b","history":null})";
    std::string turns;
    for (const auto& [question, answer] : {std::pair{"c", "d"}, std::pair{"e", "f"}})
        turns += "[|im_start|]user~" + std::string(question) +
                 "[|im_end|]~[|im_start|]assistant~{" + answer + "[|im_end|]}~";
    QCOMPARE(shown(chat.build(data)), turns + kShortPair + kShortPair + kShortPair);
    QCOMPARE(shown(chat.build("p.jsonl", data, "plain")),
        std::string("[s]c~d~e~f~a~{b[/s]}|[s]a~{b[/s]}|[s]a~{b[/s]}|"));
}

void TstRowStyle::badHistoryNamesLineAndColumn()
{
    const Case chat(kChatMl);
    for (const char* bad : {R"([["c"]])", R"([{"role":"user"}])", R"([["c",1]])", R"({"a":1})"}) {
        const std::string error = chat.error(R"({"instruction":"a","output":"b","history":[]})"
                                             "\n"
                                             R"({"instruction":"a","output":"b","history":)" +
                                             std::string(bad) + "}");
        QVERIFY(contains(error, "chat.jsonl, line 2: \"history\" of row 2 "));
    }
}

void TstRowStyle::sidesMayBeListsOfMessages()
{
    const Case chat(kChatMl);
    const std::string turns = R"({"prompt":[{"role":"user","content":"c"},{"role":"assistant",)"
                              R"("content":"d"},{"role":"user","content":"a"}],)"
                              R"("completion":[{"role":"assistant","content":"b"}]})"
                              "\n";
    const std::string mixed = R"({"prompt":"a","completion":[{"role":"assistant","content":"b"}]})"
                              "\n";
    QCOMPARE(shown(chat.build(turns + mixed)),
        "[|im_start|]user~c[|im_end|]~[|im_start|]assistant~d[|im_end|]~" + kShortPair +
            kShortPair);
    QVERIFY(contains(chat.error(turns + R"({"prompt":{"a":1},"completion":"b"})"),
        "chat.jsonl, line 2: the prompt is neither a text nor a list"));
}

void TstRowStyle::messagesMayStandInATextColumn()
{
    const Case chat(kChatMl);
    QCOMPARE(
        shown(chat.build("chat.csv", "id,messages\n1,\"[{\"\"role\"\":\"\"user\"\",\"\"content\"\":"
                                     "\"\"a\"\"},{\"\"role\"\":\"\"assistant\"\",\"\"content\"\":"
                                     "\"\"b\"\"}]\"\n")),
        kShortPair);
    QVERIFY(contains(
        chat.build("chat.csv", "id,messages\n1,\"[{'role': 'user'}]\"\n").status().message(),
        "line 2: the conversation is not a list of messages"));
}

void TstRowStyle::conversationsWithoutAnswerAreCounted()
{
    const Case chat(kChatMl);
    const std::string good = row({message("user", "a"), message("assistant", "b")});
    Result<TokenSet> set = chat.build(good + "{\"messages\":[]}\n" + row({message("user", "a")}));
    QVERIFY2(set.ok(), set.status().message().c_str());
    QCOMPARE(set.value().rows, std::uint64_t{3});
    QCOMPARE(set.value().emptyRows, std::uint64_t{2});
    QCOMPARE(chat.build(textRow(chatMl("user", "a"))).value().emptyRows, std::uint64_t{1});
}

MR_TEST(TstRowStyle)

} // namespace mr::test::tst_row_style

#include "tst_row_style.moc"
