// Each row of the table of settings: text, JSON, edits and ranges.

#include "support/other_spec.h"
#include "support/test_room.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace mr::test::tst_spec_fields {

namespace {

const SpecField& fieldOf(const QString& key)
{
    return *findSpecField(key.toStdString());
}

void addFields(bool (*chosen)(const SpecField&))
{
    QTest::addColumn<QString>("key");
    for (const SpecField& field : specFields())
        if (chosen(field))
            QTest::newRow(std::string(field.key).c_str())
                << QString::fromStdString(std::string(field.key));
}

// `value` in a field with a range.
RunSpec with(const SpecField& field, double value)
{
    RunSpec spec;
    if (const auto* whole = std::get_if<std::int64_t RunSpec::*>(&field.member))
        spec.** whole = static_cast<std::int64_t>(value);
    else
        spec.*std::get<double RunSpec::*>(field.member) = value;
    return spec;
}

bool isWhole(const SpecField& field)
{
    return std::holds_alternative<std::int64_t RunSpec::*>(field.member);
}

bool names(const Status& status, std::string_view part)
{
    return status.message().find(part) != std::string::npos;
}

} // namespace

class TestSpecFields : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void rowsAreDifferentSettings()
    {
        std::set<std::string_view> keys;
        std::set<std::pair<std::string_view, std::string_view>> options; // switches may share one
        for (const SpecField& field : specFields()) {
            QVERIFY(keys.insert(field.key).second);
            QVERIFY(field.option.empty() || options.insert({field.option, field.words.on}).second);
            const auto sameMember = [&](const SpecField& f) { return f.member == field.member; };
            QCOMPARE(std::ranges::count_if(specFields(), sameMember), 1);
        }
        QVERIFY(findSpecField("seq_len") != nullptr);
        QVERIFY(findSpecField("seq-len") == nullptr);
    }

    void textComesBackAsTheSetting_data()
    {
        addFields([](const SpecField& field) { return !field.option.empty(); });
    }

    void textComesBackAsTheSetting()
    {
        QFETCH(const QString, key);
        const SpecField& field = fieldOf(key);
        RunSpec given;
        QVERIFY(optionTexts(field, given).empty());
        setOther(field, given);
        QVERIFY(!(given == RunSpec()));

        RunSpec read;
        for (const std::string& text : optionTexts(field, given))
            QVERIFY(readOption(field, text, read).ok());

        QVERIFY(read == given);
        QCOMPARE(trainArguments(given).front(), "--" + std::string(field.option));
    }

    void jsonComesBackAsTheSetting_data()
    {
        addFields([](const SpecField&) { return true; });
    }

    void jsonComesBackAsTheSetting()
    {
        QFETCH(const QString, key);
        RunSpec given;
        setOther(fieldOf(key), given);
        const std::string json = toJson(given);

        QVERIFY(json.find("\"" + key.toStdString() + "\":") != std::string::npos);
        Result<RunSpec> read = runSpecFromJson(json);

        QVERIFY2(read.ok(), read.status().message().c_str());
        QVERIFY(read.value() == given);
        QVERIFY(!(read.value() == RunSpec()));
    }

    void anEditChangesThatSettingAlone_data()
    {
        addFields([](const SpecField&) { return true; });
    }

    void anEditChangesThatSettingAlone()
    {
        QFETCH(const QString, key);
        RunSpec given;
        given.eps = 1e-7;
        given.split = "kept";
        RunSpec now;
        setOther(fieldOf(key), now);
        RunSpec expected = given;
        std::visit([&](auto m) { expected.*m = now.*m; }, fieldOf(key).member);

        QVERIFY(edited(given, RunSpec(), now) == expected);
        QVERIFY(edited(given, now, now) == given);
    }

    void rangesHoldAtBothEnds_data()
    {
        addFields([](const SpecField& field) { return field.range.has_value(); });
    }

    void rangesHoldAtBothEnds()
    {
        QFETCH(const QString, key);
        const SpecField& field = fieldOf(key);
        const SpecRange range = *field.range;
        const double step = isWhole(field) ? 1.0 : 1e-3;
        const std::string start = std::string(field.option) + " is ";

        QCOMPARE(checkRanges(with(field, range.least)).ok(), range.hasLeast);
        QCOMPARE(checkRanges(with(field, range.most)).ok(), range.hasMost);
        QCOMPARE(checkRanges(with(field, 0.0)).ok(),
            range.orZero || (range.least < 0.0 || (range.least == 0.0 && range.hasLeast)));
        QVERIFY(names(checkRanges(with(field, range.least - step)), start));
        QVERIFY(names(checkRanges(with(field, range.most + step)), start));
        if (!isWhole(field))
            QVERIFY(names(checkRanges(with(field, std::nan(""))), start));
    }

    void wrongTextNamesTheOption_data()
    {
        QTest::addColumn<QString>("key");
        QTest::addColumn<QString>("text");
        QTest::newRow("no number") << "steps"
                                   << "many";
        QTest::newRow("a part of a number") << "steps"
                                            << "10x";
        QTest::newRow("no whole number") << "micro_batch"
                                         << "1.5";
        QTest::newRow("too many digits") << "steps"
                                         << "99999999999999999999";
        QTest::newRow("below zero") << "seed"
                                    << "-1";
        QTest::newRow("nothing") << "beta1"
                                 << "";
        QTest::newRow("no amount") << "host_memory_bytes"
                                   << "6XB";
        QTest::newRow("no rate") << "link_bytes_per_second"
                                 << "fast";
        QTest::newRow("neither word") << "allow_stale"
                                      << "some";
        QTest::newRow("no word") << "schedule"
                                 << "steep";
        QTest::newRow("no pair") << "policy_options"
                                 << "late";
    }

    void wrongTextNamesTheOption()
    {
        QFETCH(const QString, key);
        QFETCH(const QString, text);
        RunSpec spec;
        const Status status = readOption(fieldOf(key), text.toStdString(), spec);
        QVERIFY(!status.ok());
        QVERIFY2(names(status, text.toStdString()), status.message().c_str());
        QVERIFY(status.kind() == ErrorKind::InvalidArgument);
    }

    void stepsMakeEpochsIdle()
    {
        RunSpec spec;
        spec.epochs = 2.0;
        QCOMPARE(trainArguments(spec), (std::vector<std::string>{"--epochs", "2"}));
        spec.steps = 5;
        QCOMPARE(trainArguments(spec), (std::vector<std::string>{"--steps", "5"}));
    }
};

MR_TEST(TestSpecFields)

} // namespace mr::test::tst_spec_fields

#include "tst_spec_fields.moc"
