#include "core/data/explained_columns.h"

#include "core/data/column_words.h"
#include "core/data/untrainable.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

namespace mr {
namespace {

constexpr double kShortBytes = 80.0;     // longest mean of an origin or an identifier
constexpr double kFewBytes = 32.0;       // longest mean of one of a few values
constexpr double kAboutBytes = 500.0;    // longest mean of a list or object about the row
constexpr double kMostly = 0.9;          // share of the cells
constexpr std::int64_t kRowsForFew = 20; // before few values can be told from many
constexpr std::int64_t kRowsAValue = 10; // at least, on average
constexpr std::int64_t kMostFewValues = 50;

using Kind = ReadingUse::Kind;

bool hasOneOf(const ColumnFacts& column, std::initializer_list<std::string_view> words)
{
    return std::any_of(column.values.begin(), column.values.end(), [&](const std::string& value) {
        return std::find(words.begin(), words.end(), value) != words.end();
    });
}

bool isOnly(const ColumnFacts& column, std::initializer_list<std::string_view> words)
{
    return !column.hasManyValues &&
           std::all_of(column.values.begin(), column.values.end(), [&](const std::string& value) {
               return std::find(words.begin(), words.end(), value) != words.end();
           });
}

// True and false, or 0 and 1 that come again and again.
bool isYesOrNo(const ColumnFacts& column)
{
    return column.truth || (column.isNumeric() && column.sampled > column.distinct &&
                               isOnly(column, {"0", "1", "-1", "0.0", "1.0", "true", "false"}));
}

bool isIdentifier(const ColumnFacts& column)
{
    if (column.nested || column.spaced > 0.0 || column.meanBytes > kShortBytes)
        return false;
    const bool isUnique = column.sampled > 1 && column.distinct == column.sampled;
    return isNamed(column.name, NameFamily::Identifier) ||
           (isUnique && column.identifiers >= kMostly);
}

bool hasFewValues(const ColumnFacts& column)
{
    return !column.nested && column.sampled >= kRowsForFew &&
           column.distinct * kRowsAValue <= column.sampled && column.distinct <= kMostFewValues &&
           column.meanBytes <= kFewBytes;
}

bool isAboutTheRow(const ColumnFacts& column)
{
    return isNamed(column.name, NameFamily::About) &&
           column.meanBytes <= (column.nested ? kAboutBytes : kShortBytes) &&
           !isConversation(column.shape);
}

bool isRole(const ColumnFacts& column)
{
    constexpr std::array<NameFamily, 6> kRoleFamilies{NameFamily::Prompt, NameFamily::Response,
        NameFamily::Input, NameFamily::System, NameFamily::History, NameFamily::Text};
    return std::any_of(kRoleFamilies.begin(), kRoleFamilies.end(),
        [&](NameFamily family) { return isNamed(column.name, family); });
}

// The whole of a pair, written together once more.
bool repeatsAll(const ColumnFacts& column, const ReadingUse& use)
{
    return use.columns.size() > 1 &&
           std::all_of(use.columns.begin(), use.columns.end(), [&](const ColumnFacts* used) {
               return used->rows == 0 || used->isWithin(column.name);
           });
}

bool isPartOfUsed(const ColumnFacts& column, const ReadingUse& use)
{
    return std::any_of(use.columns.begin(), use.columns.end(),
        [&](const ColumnFacts* used) { return column.isWithin(used->name); });
}

// Columns such as weights, splits and verdicts say how a row counts; the reason, or nothing.
std::string whyItRules(const ColumnFacts& column, Kind kind)
{
    if (holdsMedia(column))
        return "holds pictures, sound or video, and only text is trained";
    if (isNamed(column.name, NameFamily::Weight) && !column.nested &&
        !isOnly(column, {"1", "1.0", "true"}) && (column.isNumeric() || column.truth))
        return "may say what each row counts, which is not obeyed";
    const bool hasParts = column.hasManyValues || column.values.size() > 1;
    if (hasParts && !column.nested &&
        (isNamed(column.name, NameFamily::Split) ||
            hasOneOf(column, {"test", "validation", "valid", "val", "dev"})))
        return "marks parts of the data, such as train and test, which are not kept apart";
    if (kind != Kind::Text && isNamed(column.name, NameFamily::Verdict) &&
        !isOnly(column, {"true", "1", "1.0", "yes"}))
        return "may mark answers as good or bad";
    if (kind != Kind::Text &&
        hasOneOf(column, {"bad", "incorrect", "wrong", "rejected", "fail", "failed", "poor",
                             "invalid", "unsafe", "irrelevant", "false"}) &&
        !column.truth)
        return "may mark answers as good or bad";
    if (kind != Kind::Text && isYesOrNo(column) && column.values.size() > 1 &&
        !isNamed(column.name, NameFamily::Identifier))
        return "divides the rows in two kinds";
    if (kind == Kind::Text && isNamed(column.name, NameFamily::Class) && column.rows > 0)
        return "may be the class that a text belongs to";
    return {};
}

} // namespace

bool ReadingUse::has(const ColumnFacts& column) const noexcept
{
    return std::find(columns.begin(), columns.end(), &column) != columns.end();
}

std::string whyNotLeftOut(const ColumnFacts& column, const ReadingUse& use)
{
    if (column.rows == 0)
        return {};
    if (std::string rules = whyItRules(column, use.kind); !rules.empty())
        return rules;
    if (use.kind == Kind::Conversation && isPartOfUsed(column, use))
        return {};
    if (use.kind == Kind::Pair && repeatsAll(column, use))
        return {};
    if (isAboutTheRow(column) || isIdentifier(column))
        return {};
    if (isRole(column))
        return "may belong to what is asked or answered";
    if (column.isNumeric() || column.shape == CellShape::Values)
        return {};
    if (column.links >= kMostly || column.dates >= kMostly)
        return {};
    if (use.kind != Kind::Text && hasFewValues(column))
        return {};
    if (use.kind == Kind::Pair && !column.nested && isPartOfUsed(column, use))
        return {};
    return column.nested ? "holds a list or an object" : "holds text";
}

} // namespace mr
