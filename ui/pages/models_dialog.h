// ModelsDialog: models on this PC, what can be done with each, and why no more. One that can be
// trained is chosen for the run, or written for other programs.
//
// Threads    GUI; a worker looks. Nothing is moved or written; folders that the user adds are kept
//            in QSettings.
// Ownership  Deletes itself when it is closed.

#pragma once

#include "bridge/background.h"
#include "bridge/ui_services.h"

#include <QDialog>
#include <QStringList>

class QLabel;
class QLineEdit;
class QMenu;
class QPushButton;
class QStackedLayout;
class QTableView;

namespace mr::ui {

class LocalModelTable;
class MessageLabel;
class WordFilter;

class ModelsDialog final : public QDialog
{
    Q_OBJECT

public:
    explicit ModelsDialog(const UiServices& services, QWidget* parent);
    ~ModelsDialog() override;

    QLineEdit* filter() const { return m_filterLine; }
    QTableView* table() const { return m_table; }
    QPushButton* use() const { return m_use; }
    QPushButton* exporter() const { return m_export; }
    MessageLabel* reason() const { return m_reason; }
    MessageLabel* faults() const { return m_faults; }
    QString emptyText() const; // shown where no model was found; empty: some were
    bool busy() const { return m_question.busy(); }
    void addFolder(const QString& folder);
    void forgetFolder(const QString& folder);

signals:
    void chosen(const QString& path);

private:
    QWidget* makeHead();
    QWidget* makeEmpty();
    void makeTable();
    void makeButtons(QWidget* row);
    void look();
    void showFound(LocalModels found);
    void showCounts();
    void showSelected();
    void getOne();
    void exportOne();
    void askForFolder();
    void fillFolders();
    void take();
    const LocalModel* selected() const;

    UiServices m_services;
    LocalModelTable* m_models;
    WordFilter* m_filter;
    QLineEdit* m_filterLine;
    QPushButton* m_forget; // a menu of the folders that were added
    QMenu* m_folders;
    QStackedLayout* m_stack;
    QTableView* m_table;
    QLabel* m_empty;
    QLabel* m_counts;
    MessageLabel* m_reason; // of the selected model
    MessageLabel* m_faults; // of places
    QPushButton* m_use;
    QPushButton* m_export;
    LocalModels m_found;
    LatestOnly<LocalModels> m_question;
};

} // namespace mr::ui
