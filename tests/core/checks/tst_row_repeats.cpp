// Equal and similar rows, against what a comparison of all sets of shingles says.

#include "core/checks/row_repeats.h"
#include "support/test_room.h"

#include <algorithm>
#include <random>
#include <set>

namespace mr::test::tst_row_repeats {
namespace {

using Words = std::vector<std::string>;

Words randomWords(std::mt19937& random, std::size_t count)
{
    Words words;
    for (std::size_t i = 0; i < count; ++i)
        words.push_back("w" + std::to_string(random() % 5'000));
    return words;
}

Words changed(std::mt19937& random, Words words, int times)
{
    for (int i = 0; i < times; ++i)
        words[random() % words.size()] = "x" + std::to_string(random());
    return words;
}

std::string joined(const Words& words)
{
    std::string out;
    for (const std::string& word : words)
        out += word + " ";
    return out;
}

double likeness(const Words& a, const Words& b)
{
    const auto shingles = [](const Words& words) {
        std::set<Words> out;
        for (std::size_t i = 0; i + 5 <= words.size(); ++i)
            out.insert(Words(words.begin() + static_cast<std::ptrdiff_t>(i),
                words.begin() + static_cast<std::ptrdiff_t>(i + 5)));
        return out;
    };
    const std::set<Words> left = shingles(a);
    const std::set<Words> right = shingles(b);
    std::set<Words> both;
    std::set_intersection(
        left.begin(), left.end(), right.begin(), right.end(), std::inserter(both, both.begin()));
    return static_cast<double>(both.size()) /
           static_cast<double>(left.size() + right.size() - both.size());
}

std::optional<RowSignature> textSignature(const std::string& text)
{
    return signatureOf({{TurnRole::Text, text}});
}

std::optional<RowSignature> pairSignature(const std::string& question, const std::string& answer)
{
    return signatureOf({{TurnRole::User, question}, {TurnRole::Assistant, answer}});
}

} // namespace

class TstRowRepeats : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void likenessIsEstimated();
    void lettersAndMarksDoNotMatter();
    void shortRowsHaveNoSignature();
    void questionsAboutOneTextAreNotAlike();
    void scriptsWithoutSpacesHaveWords();
    void equalRowsNameTheFirst();
    void similarRowsAreFoundAmongMany();
    void rowsOfTheEvaluationDataAreFound();
    void aFileOfOneRowRepeatedEndsSoon();
};

void TstRowRepeats::likenessIsEstimated()
{
    std::mt19937 random(7);
    for (int i = 0; i < 300; ++i) {
        const Words one = randomWords(random, 120);
        const Words other = changed(random, one, i % 12);
        const double truth = likeness(one, other);
        const bool alike = areAlike(*textSignature(joined(one)), *textSignature(joined(other)));
        if (truth >= 0.95) // three standard errors
            QVERIFY2(alike, qPrintable(QString::number(truth)));
        if (truth <= 0.6)
            QVERIFY2(!alike, qPrintable(QString::number(truth)));
    }
}

void TstRowRepeats::lettersAndMarksDoNotMatter()
{
    const std::string text = "The miller counts the sacks, one by one; then he rests a while, and "
                             "counts them again until the evening comes.";
    std::string other;
    for (const char c : text)
        other += c == ',' || c == ';' ? '-' : static_cast<char>(std::toupper(c));
    QCOMPARE(textSignature(text)->row, textSignature(other)->row);
}

void TstRowRepeats::shortRowsHaveNoSignature()
{
    QVERIFY(!textSignature("one two three four five six seven eight nine ten eleven twelve "
                           "thirteen"));
    QVERIFY(textSignature("one two three four five six seven eight nine ten eleven twelve thirteen "
                          "fourteen"));
}

void TstRowRepeats::questionsAboutOneTextAreNotAlike()
{
    std::mt19937 random(3);
    const std::string passage = joined(randomWords(random, 200));
    const auto first = pairSignature(passage + "Who built it?", "Ada of the mill");
    const auto second = pairSignature(passage + "When was it?", "in the year 1820");
    const auto again = pairSignature(passage + "Who built it then?", "Ada of the mill");
    QVERIFY(!areAlike(*first, *second));
    QVERIFY(areAlike(*first, *again));
}

void TstRowRepeats::scriptsWithoutSpacesHaveWords()
{
    const std::string one = "水車は川の水でまわり、粉屋は朝から晩まで麦をひいて袋につめます。";
    const std::string other = "水車は川の水でまわり、粉屋は朝から晩まで麦をひいて袋につめます！";
    const std::string third = "鳥は空を高く飛び、海の向こうの島へ春になると帰っていくのです。";
    QVERIFY(areAlike(*textSignature(one), *textSignature(other)));
    QVERIFY(!areAlike(*textSignature(one), *textSignature(third)));
}

void TstRowRepeats::equalRowsNameTheFirst()
{
    RowRepeats repeats;
    for (const std::uint64_t hash : {5, 7, 5, 9, 7, 5})
        repeats.add({hash, hash}, {}, false);
    const RowRepeats::Found found = repeats.find();
    const std::uint32_t none = RowRepeats::kNone;
    QCOMPARE(found.same, (std::vector<std::uint32_t>{none, none, 0, none, 1, 0}));
    QCOMPARE(found.alike, std::vector<std::uint32_t>(6, none));
    QCOMPARE(found.sameInEvaluation, std::vector<std::uint32_t>(6, none));
}

// Clusters of a row with one or two words changed, among rows that have nothing in common.
void TstRowRepeats::similarRowsAreFoundAmongMany()
{
    std::mt19937 random(11);
    RowRepeats repeats;
    std::vector<std::uint32_t> expected;
    for (std::uint32_t cluster = 0; cluster < 400; ++cluster) {
        const Words base = randomWords(random, 150);
        const auto first = static_cast<std::uint32_t>(expected.size());
        for (std::uint32_t copy = 0; copy <= cluster % 3; ++copy) {
            const Words words = copy == 0 ? base : changed(random, base, 1);
            repeats.add({expected.size() + 1, 0}, textSignature(joined(words)), false);
            expected.push_back(copy == 0 ? RowRepeats::kNone : first);
        }
    }
    QCOMPARE(repeats.find().alike, expected);
}

void TstRowRepeats::rowsOfTheEvaluationDataAreFound()
{
    std::mt19937 random(13);
    const Words held = randomWords(random, 100);
    RowRepeats repeats;
    repeats.add({1, 1}, {}, true);
    repeats.add({2, 2}, textSignature(joined(held)), true);
    repeats.add({1, 1}, {}, false);
    repeats.add({3, 3}, textSignature(joined(changed(random, held, 1))), false);
    repeats.add({4, 4}, textSignature(joined(randomWords(random, 100))), false);
    const RowRepeats::Found found = repeats.find();
    const std::uint32_t none = RowRepeats::kNone;
    QCOMPARE(repeats.evaluationCount(), 2U);
    QCOMPARE(found.sameInEvaluation, (std::vector<std::uint32_t>{none, none, 0, none, none}));
    QCOMPARE(found.alikeInEvaluation, (std::vector<std::uint32_t>{none, none, none, 1, none}));
    QCOMPARE(found.same, std::vector<std::uint32_t>(5, none));
    QCOMPARE(found.alike, std::vector<std::uint32_t>(5, none));
}

void TstRowRepeats::aFileOfOneRowRepeatedEndsSoon()
{
    std::mt19937 random(17);
    const auto signature = textSignature(joined(randomWords(random, 100)));
    RowRepeats repeats;
    constexpr std::uint32_t kRows = 20'000; // all pairs would be 200 million comparisons a band
    for (std::uint32_t i = 0; i < kRows; ++i)
        repeats.add({i, 1}, signature, false);
    const RowRepeats::Found found = repeats.find();
    QCOMPARE(std::count(found.alike.begin(), found.alike.end(), 0U),
        static_cast<std::ptrdiff_t>(kRows - 1));
}

MR_TEST(TstRowRepeats)

} // namespace mr::test::tst_row_repeats

#include "tst_row_repeats.moc"
