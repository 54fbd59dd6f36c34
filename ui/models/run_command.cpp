#include "models/run_command.h"

#include "models/setting_looks.h"

#include <millrace/spec_fields.h>

#include <QStringList>

#include <algorithm>
#include <string>
#include <variant>

namespace mr::ui {

namespace {

QString quoted(const std::string& text)
{
    QString value = QString::fromStdString(text);
    const auto plain = [](QChar c) {
        return c.isLetterOrNumber() || QStringLiteral("/._-+=:,@%").contains(c);
    };
    if (!value.isEmpty() && std::all_of(value.begin(), value.end(), plain))
        return value;
    QString escaped = value;
    escaped.replace(QLatin1Char('\''), QLatin1String("'\\''"));
    return QLatin1Char('\'') + escaped + QLatin1Char('\'');
}

QString options(const RunSpec& spec)
{
    QStringList words;
    for (const std::string& word : trainArguments(spec))
        words << quoted(word);
    return words.join(QLatin1Char(' '));
}

} // namespace

QString trainCommand(const RunSpec& spec)
{
    return QStringLiteral("millrace train ") + options(spec);
}

QString keptSettings(const RunSpec& spec)
{
    RunSpec kept;
    for (const SpecField& field : specFields())
        if (!field.isPlace && !hasEditor(field.key))
            std::visit([&](auto member) { kept.*member = spec.*member; }, field.member);
    // The page edits the first dataset of a list.
    if (spec.data.size() > 1)
        kept.data.assign(spec.data.begin() + 1, spec.data.end());
    if (spec.evalData.size() > 1)
        kept.evalData.assign(spec.evalData.begin() + 1, spec.evalData.end());
    for (DataSource& source : kept.data)
        source = {source.path, DataFormat::Auto, {}, source.skipBadRows};
    if (!spec.modelDir.empty())
        kept.scratchConfig = kept.scratchTokenizer = {};
    return options(kept);
}

} // namespace mr::ui
