// NavRail: the pages of the window, down its left side.

#pragma once

#include <QVector>
#include <QWidget>

class QAction;
class QActionGroup;
class QVBoxLayout;

namespace mr::ui {

class NavRail final : public QWidget
{
    Q_OBJECT

public:
    explicit NavRail(QWidget* parent = nullptr);

    // The action is checkable, exclusive with the others, and has its text, icon and shortcut set
    // by the caller.
    void addPage(QAction* action);
    // Below the pages, at the bottom of the rail.
    void addFooter(QWidget* widget);

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QActionGroup* m_group;
    QVBoxLayout* m_pages;
    QVBoxLayout* m_footer;
};

} // namespace mr::ui
