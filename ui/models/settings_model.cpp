#include "models/settings_model.h"

#include "text/units.h"

#include <millrace/spec_fields.h>

#include <QFont>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace mr::ui {

namespace {

using Leaves = std::map<QString, QJsonValue>;

// Budgets that were not given follow the free memory at a run's start, which always differs a bit.
constexpr double kSameBudget = 0.1;

bool isBudget(const QString& key)
{
    const SpecField* field = findSpecField(key.toStdString());
    return field != nullptr && field->unit == SpecUnit::Bytes;
}

bool isPlace(const QString& key)
{
    const SpecField* field = findSpecField(key.toStdString());
    return field != nullptr && field->isPlace;
}

bool sameSetting(const QString& key, const QJsonValue& a, const QJsonValue& b)
{
    if (!isBudget(key) || !a.isDouble() || !b.isDouble())
        return a == b;
    return std::abs(a.toDouble() - b.toDouble()) <=
           kSameBudget * std::max(a.toDouble(), b.toDouble());
}

void addLeaves(const QJsonObject& object, const QString& prefix, Leaves& leaves)
{
    for (auto entry = object.begin(); entry != object.end(); ++entry) {
        const bool isBranch = entry.value().isObject() && !entry.value().toObject().isEmpty();
        if (isBranch)
            addLeaves(entry.value().toObject(), prefix + entry.key() + QLatin1Char('.'), leaves);
        else
            leaves.emplace(prefix + entry.key(), entry.value());
    }
}

Leaves leavesOf(const RunRow& run)
{
    Leaves leaves;
    const auto document = QJsonDocument::fromJson(QByteArray::fromStdString(run.configJson));
    addLeaves(document.object(), {}, leaves);
    return leaves;
}

QJsonValue valueIn(const Leaves& leaves, const QString& key)
{
    const auto found = leaves.find(key);
    return found == leaves.end() ? QJsonValue(QJsonValue::Undefined) : found->second;
}

QByteArray quoted(const QString& text)
{
    return '"' + text.toUtf8().replace("\"", "\"\"") + '"';
}

} // namespace

QString SettingRow::text(int run) const
{
    const QJsonValue& value = values.at(static_cast<std::size_t>(run));
    if (value.isUndefined())
        return {};
    if (isBudget(key) && value.isDouble())
        return memoryText(value.toDouble());
    if (value.isArray())
        return QString::fromUtf8(QJsonDocument(value.toArray()).toJson(QJsonDocument::Compact));
    if (value.isObject())
        return QStringLiteral("{}");
    if (value.isNull())
        return QStringLiteral("null");
    const QString text = value.toVariant().toString();
    return text.isEmpty() ? QStringLiteral("\"\"") : text;
}

std::vector<SettingRow> settingRows(const RunRow& first, const RunRow& second)
{
    const Leaves a = leavesOf(first);
    const Leaves b = leavesOf(second);
    Leaves all = a;
    all.insert(b.begin(), b.end());
    std::vector<SettingRow> rows;
    for (const auto& leaf : all) {
        SettingRow row{leaf.first, {valueIn(a, leaf.first), valueIn(b, leaf.first)}, false};
        row.differs = !isPlace(row.key) &&
                      !(row.isInBoth() && sameSetting(row.key, row.values[0], row.values[1]));
        rows.push_back(std::move(row));
    }
    return rows;
}

int SettingsModel::rows() const
{
    return static_cast<int>(m_shown.size());
}

bool SettingsModel::isNumber(int) const
{
    return false; // texts beside each other
}

QVariant SettingsModel::cell(int row, int column, int role) const
{
    const SettingRow& setting = m_rows[m_shown[static_cast<std::size_t>(row)]];
    switch (role) {
    case Qt::DisplayRole:
    case Qt::ToolTipRole: {
        if (column == What)
            return setting.key;
        const QString text = setting.text(column - First);
        return text.isEmpty() ? tr("not set") : text;
    }
    case Qt::FontRole: {
        QFont font;
        font.setItalic(column != What && setting.text(column - First).isEmpty());
        font.setBold(m_allShown && setting.differs); // among those that are the same
        return font;
    }
    default:
        return {};
    }
}

QString SettingsModel::title(int column) const
{
    return column == What ? tr("Setting") : m_labels.at(static_cast<std::size_t>(column - First));
}

void SettingsModel::setSettings(std::vector<SettingRow> rows, const std::array<QString, 2>& labels)
{
    const bool isSame =
        labels == m_labels && std::equal(rows.begin(), rows.end(), m_rows.begin(), m_rows.end(),
                                  [](const SettingRow& a, const SettingRow& b) {
                                      return a.key == b.key && a.values == b.values;
                                  });
    if (isSame)
        return; // a run that goes on brings them again and again
    beginResetModel();
    m_rows = std::move(rows);
    m_labels = labels;
    choose();
    endResetModel();
}

void SettingsModel::setAllShown(bool on)
{
    if (on == m_allShown)
        return;
    beginResetModel();
    m_allShown = on;
    choose();
    endResetModel();
}

void SettingsModel::choose()
{
    m_shown.clear();
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        if (m_allShown || m_rows[i].differs)
            m_shown.push_back(i);
    }
}

int SettingsModel::differing() const
{
    return static_cast<int>(std::count_if(
        m_rows.begin(), m_rows.end(), [](const SettingRow& row) { return row.differs; }));
}

QByteArray SettingsModel::csv() const
{
    QByteArray text("setting,first,second\n");
    for (const SettingRow& row : m_rows)
        text += quoted(row.key) + ',' + quoted(row.text(0)) + ',' + quoted(row.text(1)) + '\n';
    return text;
}

} // namespace mr::ui
