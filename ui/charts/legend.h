// A row of colour samples with their words, which wraps where it does not fit.
//
// Threads  GUI.

#pragma once

#include <QColor>
#include <QString>
#include <QWidget>

#include <functional>
#include <vector>

namespace mr::ui {

class Legend final : public QWidget
{
    Q_OBJECT

public:
    enum class Mark { Line, Dash, Dot, Box };

    struct Entry {
        QString word;
        QString explanation; // tooltip; may be empty
        Mark mark = Mark::Line;
        std::function<QColor(const QPalette&)> color; // asked when painting: themes change
    };

    explicit Legend(QWidget* parent = nullptr);

    void setEntries(std::vector<Entry> entries);

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;
    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override;

protected:
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override;

private:
    std::vector<QRect> place(int width) const; // one for each entry
    int entryWidth(const Entry& entry) const;

    std::vector<Entry> m_entries;
};

} // namespace mr::ui
