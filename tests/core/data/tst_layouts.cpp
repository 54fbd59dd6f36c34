// Every layout of the catalogue: three rows each, and their outcome.

#include "core/data/layout_case.h"
#include "core/data/layout_choice.h"
#include "core/data/layouts.h"
#include "support/test_room.h"

#include <set>

namespace mr::test::tst_layouts {

namespace {

std::vector<Layout> catalogue()
{
    std::vector<Layout> out;
    for (const auto layouts :
        {pairLayouts(), questionLayouts(), conversationLayouts(), refusedLayouts()})
        out.insert(out.end(), layouts.begin(), layouts.end());
    return out;
}

// The expected outcome of a case, in one word.
std::string outcomeOf(const Json& one)
{
    if (one.contains("expect"))
        return one["expect"].get<std::string>();
    return one.contains("mapping") ? "taken" : one.contains("asked") ? "asked" : "refused";
}

std::string reasonOf(const Json& one, const std::string& kind, const std::string& advice)
{
    if (one.contains("why"))
        return one["why"].get<std::string>();
    if (one.contains("mapping")) {
        const std::map<std::string, std::string> mapping = one["mapping"];
        return kind + ": `" + mapOption(mapping).substr(6) + "`";
    }
    return advice.empty() ? kind : kind + ": " + advice;
}

std::string cell(std::string text)
{
    for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
        text.replace(at, 1, "\\|");
    return text;
}

std::string page()
{
    std::string out =
        "# Dataset layouts\n\n"
        "What is made of rows in layouts that people have (`core/data/layouts.h`), and of others "
        "that no catalogue\nknows. The tests `layouts` and `layout_choice` check every line; "
        "`layouts` also checks this page and writes\nit with `MILLRACE_WRITE_LAYOUTS=1`.\n\n"
        "## Known by name\n\n| layout | what happens | why | source |\n|---|---|---|---|\n";
    const std::vector<Json> cases = casesOf("layouts.jsonl");
    for (const Layout& layout : catalogue())
        for (const Json& one : cases)
            if (one["layout"] == std::string(layout.name)) {
                const std::string why =
                    reasonOf(one, std::string(name(layout.kind)), std::string(layout.advice));
                out += "| " + std::string(layout.name) + " | " + outcomeOf(one) + " | " +
                       cell(why) + " | " + std::string(layout.source) + " |\n";
            }
    out += "\n## Not in the catalogue\n\n| columns | what happens | why |\n|---|---|---|\n";
    for (const Json& one : casesOf("foreign_layouts.jsonl"))
        out += "| " + one["layout"].get<std::string>() + " | " + outcomeOf(one) + " | " +
               cell(reasonOf(one, {}, {})) + " |\n";
    return out;
}

std::vector<Json> documentsOf(const Found& found, const std::string& path)
{
    std::vector<Json> out;
    const Status read =
        readDocuments({path, DataFormat::Auto, {}}, found.shape, {}, [&](const Document& document) {
            Json one = document.isPair
                           ? Json{{"prompt", document.prompt}, {"response", document.response}}
                           : Json{{"text", document.text}};
            if (!document.system.empty())
                one["system"] = document.system;
            out.push_back(std::move(one));
            return Status();
        });
    if (!read.ok())
        out.push_back(read.message());
    return out;
}

void compareTaken(const Found& found, const Json& one, const std::string& path)
{
    QVERIFY2(found.status.ok(), found.message().c_str());
    QCOMPARE(found.shape.map.layout, one["layout"].get<std::string>());
    QCOMPARE(found.mapping(), (one["mapping"].get<std::map<std::string, std::string>>()));
    if (one.contains("documents"))
        QCOMPARE(Json(documentsOf(found, path)).dump(), one["documents"].dump());
}

void compareAsked(const Found& found, const Json& one)
{
    QCOMPARE(found.refusal(), DataRefusal::UnknownColumns);
    QVERIFY(contains(found.message(), one["layout"].get<std::string>()));
    for (const auto& option : one["asked"]) {
        QVERIFY(contains(found.message(), option.get<std::string>()));
    }
    QCOMPARE(found.status.kind(), ErrorKind::InvalidArgument);
    QVERIFY(found.shape.refusal.readings.size() >= one["asked"].size());
}

} // namespace

class TstLayouts : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void threeRowsOfEach_data();
    void threeRowsOfEach();
    void theOrderOfColumnsDecidesNothing_data() { threeRowsOfEach_data(); }
    void theOrderOfColumnsDecidesNothing();
    void everyLayoutHasItsRows();
    void thePageSaysWhatHappens();

private:
    void check(bool reversed);
    Folder m_folder;
};

void TstLayouts::threeRowsOfEach_data()
{
    QTest::addColumn<int>("index");
    int index = 0;
    for (const Json& one : casesOf("layouts.jsonl"))
        QTest::newRow(one["layout"].get<std::string>().c_str()) << index++;
}

void TstLayouts::check(bool reversed)
{
    QFETCH(const int, index);
    static const std::vector<Json> cases = casesOf("layouts.jsonl");
    const Json& one = cases.at(static_cast<std::size_t>(index));

    const Found found = look(m_folder, "rows.jsonl", jsonLines(one["rows"], reversed));

    if (one.contains("mapping"))
        return compareTaken(found, one, m_folder.path("rows.jsonl"));
    QVERIFY(!found.status.ok());
    if (one.contains("asked"))
        return compareAsked(found, one);
    QCOMPARE(std::string(name(found.refusal())), one["refused"].get<std::string>());
    QVERIFY(contains(found.message(), one["layout"].get<std::string>()));
}

void TstLayouts::threeRowsOfEach()
{
    check(false);
}

void TstLayouts::theOrderOfColumnsDecidesNothing()
{
    check(true);
}

void TstLayouts::everyLayoutHasItsRows()
{
    std::set<std::string> withRows;
    for (const Json& one : casesOf("layouts.jsonl"))
        withRows.insert(one["layout"].get<std::string>());
    std::set<std::string> known;
    for (const Layout& layout : catalogue()) {
        QVERIFY2(known.insert(std::string(layout.name)).second, std::string(layout.name).c_str());
        QVERIFY2(!layout.source.empty(), std::string(layout.name).c_str());
    }
    QVERIFY(known == withRows);
    QVERIFY(known.size() >= 60);
}

void TstLayouts::thePageSaysWhatHappens()
{
    const std::string path = testFile("data/layouts.md");
    if (qEnvironmentVariableIsSet("MILLRACE_WRITE_LAYOUTS")) {
        QFile file(QString::fromStdString(path));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(QByteArray::fromStdString(page()));
    }
    QVERIFY2(readFile(path) == page(), "write it again with MILLRACE_WRITE_LAYOUTS=1");
}

MR_TEST(TstLayouts)

} // namespace mr::test::tst_layouts

#include "tst_layouts.moc"
