// ReadingChoice: the likely readings of a file whose columns may mean several things, each with the
// first row as it reads it.
//
// It stays after a choice, so that another one can be tried; without readings it is hidden.

#pragma once

#include <millrace/library.h>

#include <QWidget>

#include <map>
#include <optional>
#include <string>
#include <vector>

class QButtonGroup;
class QLabel;
class QRadioButton;
class QVBoxLayout;

namespace mr::ui {

class ReadingChoice final : public QWidget
{
    Q_OBJECT

public:
    using Mapping = std::map<std::string, std::string>;

    explicit ReadingChoice(QWidget* parent = nullptr);

    void setReadings(const std::vector<DataReading>& readings);
    void clear() { setReadings({}); }
    // Marks the reading that says just that, or none.
    void setChosen(const std::optional<Mapping>& mapping);

    int count() const { return static_cast<int>(m_rows.size()); }
    QRadioButton* button(int index) const;
    QString firstRow(int index) const;
    // Puts the choices behind `before` in the focus order; the last of them, or `before`.
    QWidget* follow(QWidget* before) const;

signals:
    void chosen(const std::map<std::string, std::string>& mapping); // by a person

protected:
    void changeEvent(QEvent* event) override;

private:
    struct Row {
        DataReading reading;
        QRadioButton* button = nullptr;
        QLabel* firstRow = nullptr;
    };

    Row makeRow(const DataReading& reading);
    void retranslateUi();

    QVBoxLayout* m_layout;
    QLabel* m_title;
    QButtonGroup* m_group;
    std::vector<Row> m_rows;
};

} // namespace mr::ui
