// ColumnForm: the kind of a row of the training file, and the columns that hold its parts.
//
// It is there for every file with columns, whether they were guessed, chosen or cannot be told. A
// change of a file that was understood is sent at once; while a column that is needed is missing,
// choices() is empty.

#pragma once

#include <millrace/library.h>

#include <QWidget>

#include <map>
#include <optional>
#include <string>
#include <vector>

class QComboBox;
class QGridLayout;
class QLabel;

namespace mr::ui {

class ColumnForm final : public QWidget
{
    Q_OBJECT

public:
    enum Kind { Text, Pair, Chat };

    explicit ColumnForm(QWidget* parent = nullptr);

    // A file without columns hides the form. Choices for the same columns stay where `info` does
    // not say better.
    void setInfo(const DatasetInfo& info);
    void clear();
    // As if a person had chosen all of that.
    void choose(const std::map<std::string, std::string>& mapping);

    // "prompt" -> column, ...; empty while one is missing.
    std::optional<std::map<std::string, std::string>> choices() const;
    Kind kind() const { return m_kind; }
    QComboBox* kindBox() const { return m_kindBox; }
    QComboBox* box(const std::string& role) const; // null: there is none in this kind
    QWidget* lastInFocusOrder() const;

signals:
    void changed(); // by a person

protected:
    void changeEvent(QEvent* event) override;

private:
    struct Row {
        std::string role;
        bool isNeeded = false;
        QLabel* label = nullptr;
        QComboBox* box = nullptr;
    };

    std::vector<Row> rowsOf(Kind kind) const;
    void build();
    void fill(const Row& row);
    void take(const std::string& role, int index);
    void chooseKind(int kind);
    void retranslateUi();

    QGridLayout* m_grid;
    QLabel* m_kindLabel;
    QComboBox* m_kindBox;
    Kind m_kind = Pair;
    std::vector<std::string> m_columns;
    std::map<std::string, std::string> m_roles;
    std::vector<Row> m_rows;
};

} // namespace mr::ui
