// The frame around one chart: title, readout at the cursor, legend, controls, menu.
//
// Threads  GUI.

#pragma once

#include "charts/chart_export.h"

#include <QFrame>

class QHBoxLayout;
class QLabel;
class QToolButton;
class QVBoxLayout;

namespace mr::ui {

class Legend;

// Columns of charts on a page that is `width` logical pixels wide.
constexpr int chartColumns(int width)
{
    return width >= 860 ? 2 : 1;
}

class ChartPanel : public QFrame
{
    Q_OBJECT

public:
    ChartPanel(const QString& title, QWidget* content, QWidget* parent = nullptr);

    void addTool(QWidget* tool); // right of the legend
    void setReadout(const QString& text);
    Legend* legend() const { return m_legend; }
    // Fills the menu; without it the panel has none.
    void setExport(ChartExport chart);
    // At twice the scale, without controls.
    QPixmap picture();

protected:
    void contextMenuEvent(QContextMenuEvent* event) override;
    void changeEvent(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void openMenu(const QPoint& globalPos);
    void applyPalette();
    void showReadout();

    QLabel* m_title = nullptr;
    QLabel* m_readout = nullptr;
    QHBoxLayout* m_tools = nullptr;
    QToolButton* m_menu = nullptr;
    Legend* m_legend = nullptr;
    ChartExport m_export;
    QString m_readoutText;
};

} // namespace mr::ui
