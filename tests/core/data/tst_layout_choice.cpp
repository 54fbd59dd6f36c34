// Readings of a file's columns that are certain, asked or refused.

#include "core/data/layout_case.h"
#include "core/data/layout_choice.h"
#include "core/data/token_set_builder.h"
#include "support/test_room.h"

namespace mr::test::tst_layout_choice {

namespace {

using Map = std::map<std::string, std::string>;

std::string repeated(const std::string& text, int times)
{
    std::string out;
    for (int i = 0; i < times; ++i)
        out += text;
    return out;
}

const char* const kTalk =
    R"([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}])";

} // namespace

class TstLayoutChoice : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void rowsOfStrangers_data();
    void rowsOfStrangers();
    void foreignLayoutsAreNotGuessed_data();
    void foreignLayoutsAreNotGuessed();
    void foreignLayoutsInAnyOrder_data() { foreignLayoutsAreNotGuessed_data(); }
    void foreignLayoutsInAnyOrder();
    void questionsListEveryReading();
    void aColumnThatComesLateCounts();
    void rowsFarFromTheBeginningAreMeasured();
    void copiesOfWhatIsUsedAreNoQuestion();
    void aMapSettlesEveryQuestion();
    void aMapMayNameAPlaceWithin();
    void aMapThatLeavesASideOpenIsAsked();
    void namesForAShellAreQuoted();

private:
    void checkForeign(bool reversed);
    Folder m_folder;
};

void TstLayoutChoice::rowsOfStrangers_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("content");
    QTest::addColumn<QString>("expected"); // a mapping, or a part of the refusal
    const auto row = [](const char* name, const char* file, const QString& content,
                         const char* expected) {
        QTest::newRow(name) << QString::fromUtf8(file) << content << QString::fromUtf8(expected);
    };
    const auto chat = QString::fromUtf8(kTalk);
    row("preferences as texts", "a.jsonl",
        R"({"chosen": "Human: hi Assistant: kind", "rejected": "Human: hi Assistant: go"})",
        "hh-rlhf: holds preferences");
    row("bad answers of pairs", "a.jsonl",
        "{\"prompt\": \"hi\", \"completion\": \"good\", \"label\": true}\n"
        "{\"prompt\": \"hi\", \"completion\": \"bad\", \"label\": false}\n",
        "marked as bad");
    row("bad answers of conversations", "a.jsonl", "{\"messages\": " + chat + ", \"label\": false}",
        "marked as bad");
    row("a question's id", "a.jsonl",
        R"({"question": "c?", "question_id": "z", "answer": {"value": "d", "aliases": ["D"]}})",
        "--map prompt=question,response=answer.value");
    row("a source beside a text and its summary", "a.jsonl",
        R"({"source": "cnn", "title": "t", "text": "body", "summary": "s"})",
        "--map prompt=text,response=summary");
    row("a document and its summary", "a.jsonl",
        R"({"document": "Long doc.", "summary": "Short.", "id": "1"})",
        "--map prompt=document,response=summary");
    row("a text with summary and title", "a.jsonl",
        R"({"text": "Long doc.", "summary": "Short.", "title": "T"})",
        "--map prompt=text,response=summary");
    row("a text with its class", "a.jsonl", R"({"text": "x y", "label": 1, "label_text": "pos"})",
        "say which is meant");
    row("a transcript with its system text", "a.jsonl",
        R"({"system": "SYSTEM: You", "chat": "USER: hi\n\nASSISTANT: ho"})", "glaive v2");
    row("programs of a contest", "a.jsonl",
        R"({"name": "n", "description": "d", "solutions": ["a"]})", "CodeContests");
    row("a user's name beside review and answer", "a.jsonl",
        R"({"user": "bob42", "review": "nice thing", "answer": "thanks"})", "cannot tell");
    row("two questions", "a.jsonl",
        R"({"prompt": "You are a doctor", "question": "q", "answer": "a"})", "cannot tell");
    row("an instruction beside a question", "a.jsonl",
        R"({"instruction": "Be short", "question": "q", "answer": "a"})", "cannot tell");
    row("choices", "a.jsonl",
        R"({"question": "q", "choices": ["x", "y"], "answer": 1, "subject": "s"})",
        "places of the answers count from 0 or from 1 is not certain");
    row("choices counted from 0", "a.jsonl",
        "{\"question\": \"q\", \"choices\": [\"x\", \"y\"], \"answer\": 1}\n"
        "{\"question\": \"q\", \"choices\": [\"x\", \"y\"], \"answer\": 0}\n",
        "--map 'prompt=question,input=choices[*],response=choices[answer]'");
    row("a passage", "a.jsonl", R"({"question": "q", "passage": "p", "answer": true})",
        "--map prompt=question,input=passage,response=answer");
    row("passages in a table", "a.jsonl",
        R"({"id": "1", "question": "q", "answer": "a", "type": "b", "level": "c",)"
        R"( "supporting_facts": {"title": ["t"]}, "context": {"title": ["t"]}})",
        "HotpotQA");
    row("targets before inputs", "a.jsonl", R"({"targets": "a", "inputs": "q"})",
        "--map prompt=inputs,response=targets");
    row("a before q", "a.jsonl", R"({"a": "x", "q": "y"})", "--map prompt=q,response=a");
    row("target_text before input_text", "a.jsonl", R"({"target_text": "a", "input_text": "q"})",
        "--map prompt=input_text,response=target_text");
    row("a class before its text", "a.csv",
        "sentiment,review\npositive,nice thing\nnegative,bad thing\n",
        "--map prompt=review,response=sentiment");
    row("v1 and v2", "a.csv", "v1,v2\nham,see you\nspam,win a car\n", "say which is meant");
    row("an id before a review", "a.csv", "id,review\n1,abc def\n2,ghi jkl\n", "--map text=review");
    row("pictures", "a.jsonl",
        R"({"prompt": "What is this?", "response": "A cat.", "images": ["a.jpg"]})",
        "holds pictures");
    row("a picture's path", "a.jsonl",
        R"({"question": "What is this?", "answer": "A cat.", "image": "cats/a.jpg"})",
        "holds pictures");
    row("weights of rows", "a.jsonl", R"({"prompt": "q", "response": "a", "weight": 0})",
        "what each row counts");
    row("weights that are one", "a.jsonl", R"({"prompt": "q", "response": "a", "loss_weight": 1})",
        "--map prompt=prompt,response=response");
    row("parts of the data", "a.csv",
        "prompt,response,split\nq one,a one,train\nq two,a two,test\n", "train and test");
}

void TstLayoutChoice::rowsOfStrangers()
{
    QFETCH(const QString, file);
    QFETCH(const QString, content);
    QFETCH(const QString, expected);

    const Found found = look(m_folder, file.toStdString(), content.toStdString());

    const std::string said = found.status.ok() ? mapOption(found.mapping()) : found.message();
    QVERIFY(contains(said, expected.toStdString()));
    QVERIFY(found.status.ok() || found.status.kind() == ErrorKind::InvalidArgument);
    QVERIFY(found.status.ok() || found.refusal() != DataRefusal::None);
}

void TstLayoutChoice::foreignLayoutsAreNotGuessed_data()
{
    QTest::addColumn<int>("index");
    int index = 0;
    for (const Json& one : casesOf("foreign_layouts.jsonl"))
        QTest::newRow(one["layout"].get<std::string>().c_str()) << index++;
    QVERIFY(index >= 40);
}

void TstLayoutChoice::checkForeign(bool reversed)
{
    QFETCH(const int, index);
    static const std::vector<Json> cases = casesOf("foreign_layouts.jsonl");
    const Json& one = cases.at(static_cast<std::size_t>(index));

    const Found found = look(m_folder, "rows.jsonl", jsonLines(one["rows"], reversed));

    const std::string expected = one["expect"];
    const std::string outcome = found.status.ok()                                ? "taken"
                                : found.refusal() == DataRefusal::UnknownColumns ? "asked"
                                                                                 : "refused";
    QVERIFY2(outcome == expected,
        (outcome + ": " + (found.status.ok() ? mapOption(found.mapping()) : found.message()))
            .c_str());
    if (one.contains("mapping"))
        QCOMPARE(found.mapping(), one["mapping"].get<Map>());
}

void TstLayoutChoice::foreignLayoutsAreNotGuessed()
{
    checkForeign(false);
}

void TstLayoutChoice::foreignLayoutsInAnyOrder()
{
    checkForeign(true);
}

void TstLayoutChoice::questionsListEveryReading()
{
    const Found found = look(m_folder, "two.jsonl",
        "{\"prompt\": \"Be a doctor\", \"question\": \"How are you?\", \"answer\": \"Fine.\"}\n");

    const std::string message = found.message();
    QVERIFY(contains(message, "two.jsonl: cannot tell for certain"));
    QVERIFY(contains(message, "the columns are \"prompt\", \"question\", \"answer\""));
    QVERIFY(contains(message, "\n  --map prompt=question,response=answer   (row 1: \"How are "
                              "you?\" -> \"Fine.\")"));
    QVERIFY(contains(message, "\n  --map prompt=prompt,response=answer   (row 1: \"Be a doctor\""));
    const std::vector<DataReading>& readings = found.shape.refusal.readings;
    QVERIFY(readings.size() >= 2);
    QVERIFY(!readings[0].mapping.empty() && !readings[0].firstRow.empty());
}

void TstLayoutChoice::aColumnThatComesLateCounts()
{
    const std::string pair = "{\"prompt\": \"q q\", \"response\": \"a a\"}\n";
    const auto with = [&](const std::string& late) {
        return look(m_folder, "late.jsonl", repeated(pair, 1500) + late + repeated(pair, 700));
    };

    const Found system =
        with("{\"system\": \"Be brief.\", \"prompt\": \"q q\", \"response\": \"a a\"}\n");
    const Found input = with("{\"prompt\": \"q q\", \"response\": \"a a\", \"input\": \"i i\"}\n");
    const Found hint = with("{\"prompt\": \"q q\", \"response\": \"a a\", \"hint\": \"h h\"}\n");

    QCOMPARE(system.mapping().at("system"), std::string("system"));
    QCOMPARE(input.mapping().at("input"), std::string("input"));
    QVERIFY(contains(hint.message(), "\"hint\" holds text"));
}

void TstLayoutChoice::rowsFarFromTheBeginningAreMeasured()
{
    std::string rows;
    for (int i = 0; i < 3000; ++i)
        rows += "{\"prompt\": \"q q\", \"response\": \"a a\", \"note\": \"" +
                std::string(i < 200 ? "x" : "Here is a note, number " + std::to_string(i)) +
                "\"}\n";

    const Found found = look(m_folder, "far.jsonl", rows);

    QVERIFY(contains(found.message(), "\"note\" holds text"));
}

void TstLayoutChoice::copiesOfWhatIsUsedAreNoQuestion()
{
    const Found found = look(m_folder, "copies.jsonl",
        R"({"prompt": "How are \"you\"?", "answer": "ho", "messages": )"
        R"([{"role": "user", "content": "How are \"you\"?"},)"
        R"( {"role": "assistant", "content": "ho"}]})");

    QVERIFY2(found.status.ok(), found.message().c_str());
    QCOMPARE(found.mapping(), (Map{{"messages", "messages"}}));
}

void TstLayoutChoice::aMapSettlesEveryQuestion()
{
    const std::string rows = "{\"chosen\": \"a b\", \"rejected\": \"c d\", \"hint\": \"e f\"}\n";
    const Found found =
        look(m_folder, "m.jsonl", rows, {{"prompt", "hint"}, {"response", "chosen"}});

    QVERIFY2(found.status.ok(), found.message().c_str());
    QCOMPARE(found.mapping(), (Map{{"prompt", "hint"}, {"response", "chosen"}}));
    QCOMPARE(unusedColumns(found.shape.columns, found.shape.map),
        (std::vector<std::string>{"rejected"}));
}

void TstLayoutChoice::aMapMayNameAPlaceWithin()
{
    const std::string rows =
        "{\"translation\": {\"de\": \"Das Rad.\", \"en\": \"The wheel.\"}, \"n\": 3}\n";
    const Map asked{{"prompt", "translation.de"}, {"response", "translation.en"}};
    const Found found = look(m_folder, "w.jsonl", rows, asked);
    std::string made;
    const DataSource source{m_folder.path("w.jsonl"), DataFormat::Auto, asked};

    QVERIFY2(found.status.ok(), found.message().c_str());
    QVERIFY(readDocuments(source, found.shape, {}, [&](const Document& document) {
        made = document.prompt + " -> " + document.response;
        return Status();
    }).ok());

    QCOMPARE(made, std::string("Das Rad. -> The wheel."));
    QCOMPARE(unusedColumns(found.shape.columns, found.shape.map), (std::vector<std::string>{"n"}));
    const Found unknown =
        look(m_folder, "w.jsonl", rows, {{"prompt", "translate.de"}, {"response", "n"}});
    QVERIFY(contains(unknown.message(), "names the column \"translate\", which is not there"));
}

void TstLayoutChoice::aMapThatLeavesASideOpenIsAsked()
{
    const std::string rows = "{\"question\": \"a b\", \"query\": \"c d\", \"best\": \"e f\"}\n";
    QVERIFY(contains(look(m_folder, "o.jsonl", rows, {{"response", "best"}}).message(),
        "may be \"question\" or \"query\"; add prompt=COLUMN"));
    QVERIFY(contains(look(m_folder, "o.jsonl", rows, {{"prompt", "query"}}).message(),
        "leaves the response open"));
}

void TstLayoutChoice::namesForAShellAreQuoted()
{
    QCOMPARE(
        mapOption({{"prompt", "q"}, {"response", "a"}}), std::string("--map prompt=q,response=a"));
    QCOMPARE(mapOption({{"prompt", "the question"}, {"response", "a[0]"}}),
        std::string("--map 'prompt=the question,response=a[0]'"));
}

MR_TEST(TstLayoutChoice)

} // namespace mr::test::tst_layout_choice

#include "tst_layout_choice.moc"
