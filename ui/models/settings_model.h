// The settings of two runs beside each other: those that differ, or all.
//
// Settings inside of others have their path as a name, "policy_options.urgent". A setting that one
// of the two runs lacks is shown as not set, which differs from false, 0 and an empty text.
//
// Threads  settingRows(): any. The model: GUI.

#pragma once

#include "models/table_model.h"

#include <millrace/run_reader.h>

#include <QByteArray>
#include <QJsonValue>
#include <QString>

#include <array>
#include <vector>

namespace mr::ui {

struct SettingRow {
    QString key;
    std::array<QJsonValue, 2> values; // Undefined: not set
    // Names and places always differ and do not count. Byte budgets follow the free memory, and
    // count only if they are far apart.
    bool differs = false;

    bool isInBoth() const { return !values[0].isUndefined() && !values[1].isUndefined(); }
    QString text(int run) const; // empty: not set
};

// By name.
std::vector<SettingRow> settingRows(const RunRow& first, const RunRow& second);

class SettingsModel final : public TableModel
{
    Q_OBJECT

public:
    enum Column { What, First, Second, ColumnCount };

    explicit SettingsModel(QObject* parent = nullptr)
        : TableModel(ColumnCount, parent)
    {
    }

    void setSettings(std::vector<SettingRow> rows, const std::array<QString, 2>& labels);
    void setAllShown(bool on);
    bool allShown() const { return m_allShown; }
    int differing() const;
    int count() const { return static_cast<int>(m_rows.size()); }
    QByteArray csv() const; // all settings

private:
    int rows() const override;
    QVariant cell(int row, int column, int role) const override;
    QString title(int column) const override;
    bool isNumber(int column) const override;

    void choose();

    std::vector<SettingRow> m_rows;
    std::vector<std::size_t> m_shown;
    std::array<QString, 2> m_labels;
    bool m_allShown = false;
};

} // namespace mr::ui
