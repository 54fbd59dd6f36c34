// Models on this machine as a table.
//
// Numbers for sorting are in ValueRole; what is not known has none there, and sorts last.

#pragma once

#include "models/table_model.h"

#include <millrace/local_models.h>

#include <vector>

namespace mr::ui {

class LocalModelTable final : public TableModel
{
    Q_OBJECT

public:
    enum Column { Name, Use, Size, Parameters, Architecture, Licence, Store, ColumnCount };
    enum Role { SearchRole = ValueRole + 1 }; // all texts that a filter looks at

    explicit LocalModelTable(QObject* parent = nullptr)
        : TableModel(ColumnCount, parent)
    {
    }

    void setModels(std::vector<LocalModel> models);
    const LocalModel* model(int row) const; // null: out of range
    // A run can be made of it: all of its weights, or an adapter beside them.
    static bool isTrainable(const LocalModel& model);
    static QString storeName(ModelStore store);
    static QString useName(ModelUse use);

private:
    int rows() const override;
    QVariant cell(int row, int column, int role) const override;
    QString title(int column) const override;
    bool isNumber(int column) const override;
    static QString text(const LocalModel& model, int column);
    static QVariant value(const LocalModel& model, int column);

    std::vector<LocalModel> m_models;
};

} // namespace mr::ui
