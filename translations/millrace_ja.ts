<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="ja" sourcelanguage="en">
    <context>
        <name>mr::ui::BinView</name>
        <message>
            <source>Restore</source>
            <translation>元に戻す</translation>
        </message>
        <message>
            <source>Delete for good…</source>
            <translation>完全に削除…</translation>
        </message>
        <message>
            <source>Back to the runs</source>
            <translation>実行の一覧に戻る</translation>
        </message>
        <message>
            <source>Deleted runs</source>
            <translation>削除した実行</translation>
        </message>
        <message>
            <source>Deleted runs can be restored for 30 days; then the history forgets them. Their files stay until they are deleted for good.</source>
            <translation>削除した実行は 30 日間元に戻せます。その後は履歴から消えます。ファイルは完全に削除するまで残ります。</translation>
        </message>
        <message>
            <source>There are no files of it on the disk any more.</source>
            <translation>ディスクにこの実行のファイルはもうありません。</translation>
        </message>
        <message numerus="yes">
            <source>Checkpoints, models and records in %n folder(s) go with it.</source>
            <translation>
                <numerusform>%n 個のフォルダーにあるチェックポイント、モデル、記録も削除されます。</numerusform>
            </translation>
        </message>
        <message>
            <source>Other runs were trained from it: %1.</source>
            <translation>これをもとに学習した実行があります: %1。</translation>
        </message>
        <message>
            <source>This cannot be undone.</source>
            <translation>この操作は元に戻せません。</translation>
        </message>
        <message numerus="yes">
            <source>Delete %n run(s) for good?</source>
            <translation>
                <numerusform>%n 件の実行を完全に削除しますか?</numerusform>
            </translation>
        </message>
        <message>
            <source>Delete</source>
            <translation>削除</translation>
        </message>
        <message>
            <source>Delete %1</source>
            <translation>%1 を削除</translation>
        </message>
        <message>
            <source>Cancel</source>
            <translation>キャンセル</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ChartExport</name>
        <message>
            <source>Save</source>
            <translation>保存</translation>
        </message>
        <message>
            <source>%1 could not be written: %2</source>
            <translation>%1 に書き込めませんでした: %2</translation>
        </message>
        <message>
            <source>Copy image</source>
            <translation>画像をコピー</translation>
        </message>
        <message>
            <source>Save image as PNG…</source>
            <translation>PNG 画像として保存…</translation>
        </message>
        <message>
            <source>Save data as CSV…</source>
            <translation>データを CSV として保存…</translation>
        </message>
        <message>
            <source>PNG image (*.png)</source>
            <translation>PNG 画像 (*.png)</translation>
        </message>
        <message>
            <source>CSV table (*.csv)</source>
            <translation>CSV 表 (*.csv)</translation>
        </message>
        <message>
            <source>Show as a table…</source>
            <translation>表で表示…</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ChartPanel</name>
        <message>
            <source>Actions for the chart: %1</source>
            <translation>グラフの操作: %1</translation>
        </message>
        <message>
            <source>Show as a table, copy or save this chart</source>
            <translation>このグラフを表で表示、コピーまたは保存</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::CloseQuestion</name>
        <message>
            <source>A run is active.</source>
            <translation>実行中です。</translation>
        </message>
        <message>
            <source>It can go on without the window; the tray shows how far it is. Or it is saved now and can be resumed from there; the window closes when that is done.</source>
            <translation>ウィンドウを閉じても続けられ、進み具合はトレイに表示されます。または今の状態を保存し、後でそこから再開できます。保存が終わるとウィンドウが閉じます。</translation>
        </message>
        <message>
            <source>It can go on with the window minimised. Or it is saved now and can be resumed from there; the window closes when that is done.</source>
            <translation>ウィンドウを最小化して続けられます。または今の状態を保存し、後でそこから再開できます。保存が終わるとウィンドウが閉じます。</translation>
        </message>
        <message>
            <source>Keep training in the tray</source>
            <translation>トレイで学習を続ける</translation>
        </message>
        <message>
            <source>Keep training, minimised</source>
            <translation>最小化して学習を続ける</translation>
        </message>
        <message>
            <source>Save and stop</source>
            <translation>保存して停止</translation>
        </message>
        <message>
            <source>Cancel</source>
            <translation>キャンセル</translation>
        </message>
        <message>
            <source>“%1” waits for it to end. If the run is stopped, it is not started.</source>
            <translation>「%1」がこの実行の終了を待っています。実行を停止すると、開始されません。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ColumnForm</name>
        <message>
            <source>Prompt column</source>
            <translation>プロンプトの列</translation>
        </message>
        <message>
            <source>Response column (trained)</source>
            <translation>応答の列 (学習対象)</translation>
        </message>
        <message>
            <source>Text column</source>
            <translation>テキストの列</translation>
        </message>
        <message>
            <source>Column added to the prompt</source>
            <translation>プロンプトに加える列</translation>
        </message>
        <message>
            <source>Conversation column (answers are trained)</source>
            <translation>会話の列 (回答が学習対象)</translation>
        </message>
        <message>
            <source>System prompt column</source>
            <translation>システムプロンプトの列</translation>
        </message>
        <message>
            <source>Earlier turns column</source>
            <translation>以前のやり取りの列</translation>
        </message>
        <message>
            <source>Tools column</source>
            <translation>ツールの列</translation>
        </message>
        <message>
            <source>Choose a column…</source>
            <translation>列を選択…</translation>
        </message>
        <message>
            <source>(none)</source>
            <translation>(なし)</translation>
        </message>
        <message>
            <source>Each row is</source>
            <translation>各行の内容</translation>
        </message>
        <message>
            <source>Kind of the rows</source>
            <translation>ファイルの各行の内容</translation>
        </message>
        <message>
            <source>Plain text</source>
            <translation>プレーンテキスト</translation>
        </message>
        <message>
            <source>Prompt and response</source>
            <translation>プロンプトと応答</translation>
        </message>
        <message>
            <source>Conversation</source>
            <translation>会話</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::DatasetSection</name>
        <message>
            <source>Check the rows…</source>
            <translation>行を確認…</translation>
        </message>
        <message>
            <source>Looks at every row: those that train nothing, are cut, repeat others or stand in the evaluation file can be left out.</source>
            <translation>すべての行を調べます。学習するものがない行、切られる行、他と同じ行、評価ファイルにある行を除外できます。</translation>
        </message>
        <message numerus="yes">
            <source>%n row(s) are excluded.</source>
            <translation>
                <numerusform>%n 行を除外しています。</numerusform>
            </translation>
        </message>
        <message>
            <source>Looking at the dataset…</source>
            <translation>データセットを調べています…</translation>
        </message>
        <message>
            <source>%1 rows, %2 sequences, %3</source>
            <translation>%1 行、%2 シーケンス、%3</translation>
        </message>
        <message>
            <source>%1 tokens, %2 of them trained (%3)</source>
            <translation>%1 トークン、うち %2 が学習対象 (%3)</translation>
        </message>
        <message>
            <source>%4 of every step is padding. Packed: rows %1 instead of %2, %3 padding.</source>
            <translation>各ステップの %4 がパディングです。パックすると %2 行が %1 行に、パディングは %3 になります。</translation>
        </message>
        <message>
            <source>Rows %1 instead of %2, %3 padding instead of %4.</source>
            <translation>%2 行が %1 行に、パディングは %4 から %3 になります。</translation>
        </message>
        <message>
            <source>Pac&amp;k short sequences</source>
            <translation>短いシーケンスをパックする(&amp;K)</translation>
        </message>
        <message>
            <source>Several share a row and none sees another: fewer steps in an epoch, more sequences in each, so that another learning rate may suit.</source>
            <translation>複数のシーケンスが 1 行を共有しますが、互いには見えません。エポックあたりのステップは減り、1 ステップのシーケンスは増えるため、適した学習率が変わることがあります。</translation>
        </message>
        <message numerus="yes">
            <source>%n row(s) are longer than the sequence length and are cut.</source>
            <translation>
                <numerusform>%n 行がシーケンス長を超えるため切り詰められます。</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%n row(s) have nothing to train and are skipped.</source>
            <translation>
                <numerusform>%n 行には学習対象がないため飛ばされます。</numerusform>
            </translation>
        </message>
        <message>
            <source>%1 of the answers have an empty thought. A model trained on thousands of such rows unlearns to think.</source>
            <translation>回答の %1 は思考が空です。このような行を何千も学習すると、モデルは考えなくなります。</translation>
        </message>
        <message numerus="yes">
            <source>%n row(s) hold /no_think, which this model does not know: it is read as a word of the question.</source>
            <translation>
                <numerusform>%n 行に /no_think がありますが、このモデルはそれを切り替えとして認識せず、質問の一部として読みます。</numerusform>
            </translation>
        </message>
        <message>
            <source>There is no file %1.</source>
            <translation>ファイル %1 がありません。</translation>
        </message>
        <message>
            <source>Data</source>
            <translation>データ</translation>
        </message>
        <message>
            <source>Training &amp;file</source>
            <translation>学習ファイル(&amp;F)</translation>
        </message>
        <message>
            <source>Training file</source>
            <translation>学習ファイル</translation>
        </message>
        <message>
            <source>JSONL, JSON, CSV or plain text. Drop it here.</source>
            <translation>JSONL、JSON、CSV、プレーンテキスト。ここにドロップできます。</translation>
        </message>
        <message>
            <source>&amp;Evaluation file (optional)</source>
            <translation>評価ファイル (省略可)(&amp;E)</translation>
        </message>
        <message>
            <source>Evaluation file</source>
            <translation>評価ファイル</translation>
        </message>
        <message>
            <source>Empty: 5 % of the training sequences are held out, at most 200</source>
            <translation>空欄: 学習シーケンスの 5 % (最大 200) を評価用に取り分けます</translation>
        </message>
        <message>
            <source>First rows as the model sees them</source>
            <translation>モデルから見た最初の数行</translation>
        </message>
        <message>
            <source>First rows of the dataset as tokens</source>
            <translation>データセットの最初の数行 (トークン表示)</translation>
        </message>
        <message>
            <source>Trained: part of the loss</source>
            <translation>学習対象: 損失に含まれる</translation>
        </message>
        <message>
            <source>Masked: read, not part of the loss</source>
            <translation>マスク: 読むだけで損失に含まれない</translation>
        </message>
        <message>
            <source>The names of the columns do not tell which of them hold what. Choose them here.</source>
            <translation>列の名前からは、どの列に何が入っているか判断できません。ここで選んでください。</translation>
        </message>
        <message>
            <source>This file holds preferences: answers that are to be compared, good and bad. They cannot be trained as such. To train the good answers alone, choose their columns here.</source>
            <translation>このファイルは選好データ (良い回答と悪い回答の比較) です。そのままでは学習できません。良い回答だけを学習するには、その列をここで選んでください。</translation>
        </message>
        <message>
            <source>This file holds conversations, and the model has no chat template: it does not know how they are written. Choose one to teach it; it is saved with the trained model.</source>
            <translation>このファイルは会話データですが、モデルにチャットテンプレートがなく、会話の書き方がわかりません。教えるテンプレートを選んでください。学習したモデルと一緒に保存されます。</translation>
        </message>
        <message>
            <source>Choose the columns.</source>
            <translation>列を選んでください。</translation>
        </message>
        <message>
            <source>Columns that are not used: %1</source>
            <translation>使われない列: %1</translation>
        </message>
        <message numerus="yes">
            <source>%n row(s) cannot be read (%1).</source>
            <translation>
                <numerusform>%n 行が読み取れません (%1)。</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>At least %n row(s) cannot be read (%1).</source>
            <translation>
                <numerusform>少なくとも %n 行が読み取れません (%1)。</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%n row(s) cannot be read and are left out (%1).</source>
            <translation>
                <numerusform>%n 行は読み取れないため除外されます (%1)。</numerusform>
            </translation>
        </message>
        <message>
            <source>%1: %2</source>
            <translation>%1: %2</translation>
        </message>
        <message>
            <source>not valid JSON</source>
            <translation>JSON として不正</translation>
        </message>
        <message>
            <source>not valid UTF-8</source>
            <translation>UTF-8 として不正</translation>
        </message>
        <message>
            <source>a byte of value 0</source>
            <translation>値 0 のバイトを含む</translation>
        </message>
        <message>
            <source>not built like the rows before</source>
            <translation>前の行と構造が異なる</translation>
        </message>
        <message>
            <source>more or fewer cells than the first row</source>
            <translation>セルの数が最初の行と異なる</translation>
        </message>
        <message>
            <source>its columns do not hold what is needed</source>
            <translation>列に必要な内容がない</translation>
        </message>
        <message>
            <source>the chat template cannot write it</source>
            <translation>チャットテンプレートで書けない</translation>
        </message>
        <message>
            <source>The first: %1</source>
            <translation>最初の行: %1</translation>
        </message>
        <message>
            <source>Leave o&amp;ut rows that cannot be read</source>
            <translation>読み取れない行を除外する(&amp;U)</translation>
        </message>
        <message>
            <source>The folder of the run lists them with the reason, in skipped.jsonl.</source>
            <translation>除外した行は、理由とともに実行フォルダーの skipped.jsonl に記録されます。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ReadingChoice</name>
        <message>
            <source>%1 as plain text</source>
            <translation>%1 をプレーンテキストとして</translation>
        </message>
        <message>
            <source>%1 as a conversation</source>
            <translation>%1 を会話として</translation>
        </message>
        <message>
            <source>%1, with %2</source>
            <translation>%1 (%2 も使用)</translation>
        </message>
        <message>
            <source>System prompt: %1</source>
            <translation>システムプロンプト: %1</translation>
        </message>
        <message>
            <source>Prompt: %1</source>
            <translation>プロンプト: %1</translation>
        </message>
        <message>
            <source>Response: %1</source>
            <translation>応答: %1</translation>
        </message>
        <message>
            <source>Text: %1</source>
            <translation>テキスト: %1</translation>
        </message>
        <message>
            <source>Conversation: %1</source>
            <translation>会話: %1</translation>
        </message>
        <message>
            <source>Likely readings, each with the first row as it would be trained:</source>
            <translation>考えられる読み方と、それぞれで学習される最初の行:</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::DesktopPresence</name>
        <message>
            <source>A model is being trained.</source>
            <translation>モデルを学習しています。</translation>
        </message>
        <message>
            <source>The run</source>
            <translation>実行</translation>
        </message>
        <message>
            <source>“%1” is paused</source>
            <translation>「%1」は一時停止中です</translation>
        </message>
        <message>
            <source>It cannot save, and waits for you. Nothing is lost.</source>
            <translation>保存できないため、操作を待っています。失われたものはありません。</translation>
        </message>
        <message>
            <source>“%1” failed</source>
            <translation>「%1」は失敗しました</translation>
        </message>
        <message>
            <source>All %1 steps are done.</source>
            <translation>%1 ステップすべてが完了しました。</translation>
        </message>
        <message>
            <source>Best evaluation: %1.</source>
            <translation>最良の評価: %1。</translation>
        </message>
        <message>
            <source>“%1” is done</source>
            <translation>「%1」が完了しました</translation>
        </message>
        <message>
            <source>“%1” was stopped</source>
            <translation>「%1」は停止しました</translation>
        </message>
        <message>
            <source>The run could not be started</source>
            <translation>実行を開始できませんでした</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::EventTableModel</name>
        <message>
            <source>Info</source>
            <translation>情報</translation>
        </message>
        <message>
            <source>Warning</source>
            <translation>警告</translation>
        </message>
        <message>
            <source>Error</source>
            <translation>エラー</translation>
        </message>
        <message>
            <source>Kind</source>
            <translation>種類</translation>
        </message>
        <message>
            <source>Step</source>
            <translation>ステップ</translation>
        </message>
        <message>
            <source>After</source>
            <translation>経過</translation>
        </message>
        <message>
            <source>Event</source>
            <translation>内容</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::Format</name>
        <message>
            <source>%1 bytes</source>
            <translation>%1 バイト</translation>
        </message>
        <message>
            <source>%1 B</source>
            <comment>billions</comment>
            <translation>%1 B</translation>
        </message>
        <message>
            <source>%1 M</source>
            <comment>millions</comment>
            <translation>%1 M</translation>
        </message>
        <message>
            <source>%1 K</source>
            <comment>thousands</comment>
            <translation>%1 K</translation>
        </message>
        <message>
            <source>%1 s</source>
            <translation>%1 秒</translation>
        </message>
        <message>
            <source>%1 ms</source>
            <translation>%1 ms</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::HistoryPage</name>
        <message>
            <source>The history cannot be read: %1</source>
            <translation>履歴を読み込めません: %1</translation>
        </message>
        <message>
            <source>Filter</source>
            <translation>絞り込み</translation>
        </message>
        <message>
            <source>State</source>
            <translation>状態</translation>
        </message>
        <message>
            <source>All states</source>
            <translation>すべての状態</translation>
        </message>
        <message>
            <source>Active</source>
            <translation>実行中</translation>
        </message>
        <message>
            <source>Done</source>
            <translation>完了</translation>
        </message>
        <message>
            <source>Stopped</source>
            <translation>停止</translation>
        </message>
        <message>
            <source>Failed or interrupted</source>
            <translation>失敗または中断</translation>
        </message>
        <message>
            <source>Open</source>
            <translation>開く</translation>
        </message>
        <message>
            <source>Runs</source>
            <translation>実行の一覧</translation>
        </message>
        <message>
            <source>No runs yet.</source>
            <translation>実行はまだありません。</translation>
        </message>
        <message>
            <source>Every run is kept here with its charts, also those that were started on the command line.</source>
            <translation>コマンドラインから開始したものも含め、すべての実行がグラフとともにここに残ります。</translation>
        </message>
        <message>
            <source>New run</source>
            <translation>新しい実行</translation>
        </message>
        <message numerus="yes">
            <source>%n run(s)</source>
            <translation>
                <numerusform>%n 件の実行</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%1 of %n run(s)</source>
            <translation>
                <numerusform>%n 件中 %1 件の実行</numerusform>
            </translation>
        </message>
        <message>
            <source>No run is in this state.</source>
            <translation>この状態の実行はありません。</translation>
        </message>
        <message>
            <source>No run matches “%1”.</source>
            <translation>「%1」に一致する実行はありません。</translation>
        </message>
        <message>
            <source>Choose a run first</source>
            <translation>先に実行を選んでください</translation>
        </message>
        <message>
            <source>This run is finished, active, or has no checkpoint</source>
            <translation>この実行は完了済み、実行中、またはチェックポイントがありません</translation>
        </message>
        <message>
            <source>Copy</source>
            <translation>コピー</translation>
        </message>
        <message>
            <source>Copy as CSV</source>
            <translation>CSV としてコピー</translation>
        </message>
        <message>
            <source>Show folder</source>
            <translation>フォルダーを表示</translation>
        </message>
        <message>
            <source>Compare</source>
            <translation>比較</translation>
        </message>
        <message>
            <source>Show both runs beside each other</source>
            <translation>2 つの実行を並べて表示</translation>
        </message>
        <message>
            <source>Choose two runs first (click, then Ctrl+click)</source>
            <translation>先に 2 つの実行を選んでください (クリック、続けて Ctrl+クリック)</translation>
        </message>
        <message>
            <source>Filter by name, tag, note, model, dataset or policy (Ctrl+F)</source>
            <translation>名前、タグ、メモ、モデル、データセット、方式で絞り込み (Ctrl+F)</translation>
        </message>
        <message>
            <source>Notes</source>
            <translation>メモ</translation>
        </message>
        <message>
            <source>Bin</source>
            <translation>ごみ箱</translation>
        </message>
        <message>
            <source>Rename</source>
            <translation>名前を変更</translation>
        </message>
        <message>
            <source>Tags…</source>
            <translation>タグ…</translation>
        </message>
        <message>
            <source>Note…</source>
            <translation>メモ…</translation>
        </message>
        <message>
            <source>Delete</source>
            <translation>削除</translation>
        </message>
        <message>
            <source>Show tags and note beside the runs (F9)</source>
            <translation>一覧の横にタグとメモを表示 (F9)</translation>
        </message>
        <message>
            <source>Show the runs that were deleted</source>
            <translation>削除した実行を表示</translation>
        </message>
        <message>
            <source>New run like this</source>
            <translation>この実行と同じ設定で新規実行</translation>
        </message>
        <message>
            <source>Export…</source>
            <translation>エクスポート…</translation>
        </message>
        <message>
            <source>No program answers that shows folders. The path is on the clipboard: %1</source>
            <translation>フォルダーを表示するプログラムが応答しません。パスをクリップボードにコピーしました: %1</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::HomePage</name>
        <message>
            <source>Looking at this PC…</source>
            <translation>この PC を調べています…</translation>
        </message>
        <message>
            <source>Processor</source>
            <translation>プロセッサー</translation>
        </message>
        <message>
            <source>Cores</source>
            <translation>コア</translation>
        </message>
        <message>
            <source>%1 physical, %2 threads, %3</source>
            <translation>物理 %1、スレッド %2、%3</translation>
        </message>
        <message>
            <source>Memory</source>
            <translation>メモリ</translation>
        </message>
        <message>
            <source>%1, %2 available</source>
            <translation>%1 (空き %2)</translation>
        </message>
        <message>
            <source>Disk</source>
            <translation>ディスク</translation>
        </message>
        <message>
            <source>%1 free for runs</source>
            <translation>実行用の空き %1</translation>
        </message>
        <message>
            <source>GPU</source>
            <translation>GPU</translation>
        </message>
        <message>
            <source>None found: models are trained on the processor.</source>
            <translation>見つかりません。モデルはプロセッサーで学習します。</translation>
        </message>
        <message>
            <source>%1, %2</source>
            <translation>%1、%2</translation>
        </message>
        <message>
            <source>The sample project is not installed: %1 has no model and questions. Start with a model of your own on the New run page.</source>
            <translation>サンプルプロジェクトがインストールされていません。%1 にモデルと問題がありません。「新しい実行」ページで手持ちのモデルから始めてください。</translation>
        </message>
        <message>
            <source>its folder</source>
            <translation>そのフォルダー</translation>
        </message>
        <message>
            <source>A run is active; one run at a time.</source>
            <translation>実行中です。同時に実行できるのは 1 つです。</translation>
        </message>
        <message>
            <source>No runs yet. Fine-tune the sample above, or start a new run with a model folder and a dataset of your own.</source>
            <translation>実行はまだありません。上のサンプルをファインチューニングするか、手持ちのモデルフォルダーとデータセットで新しい実行を始めてください。</translation>
        </message>
        <message>
            <source>%1 stopped unexpectedly at step %2.</source>
            <translation>%1 はステップ %2 で予期せず停止しました。</translation>
        </message>
        <message>
            <source>%1 failed at step %2.</source>
            <translation>%1 はステップ %2 で失敗しました。</translation>
        </message>
        <message>
            <source>%1 was stopped at step %2 of %3.</source>
            <translation>%1 はステップ %2 / %3 で停止されました。</translation>
        </message>
        <message>
            <source>Resume %1</source>
            <translation>%1 を再開</translation>
        </message>
        <message>
            <source>Open</source>
            <translation>開く</translation>
        </message>
        <message>
            <source>Open %1</source>
            <translation>%1 を開く</translation>
        </message>
        <message>
            <source>step %1 of %2</source>
            <translation>ステップ %1 / %2</translation>
        </message>
        <message>
            <source>loss %1</source>
            <translation>損失 %1</translation>
        </message>
        <message>
            <source>Fine-tune language models larger than the memory of your GPU.</source>
            <translation>GPU のメモリより大きな言語モデルをファインチューニングします。</translation>
        </message>
        <message>
            <source>Sample project</source>
            <translation>サンプルプロジェクト</translation>
        </message>
        <message>
            <source>A small language model and a set of everyday and arithmetic questions come with Millrace. Fine-tune it to see a whole run: the loss falls on the Live page, and the run is kept in the history.</source>
            <translation>Millrace には、小さな言語モデルと、日常や計算についての問題集が付属しています。ファインチューニングして、実行の流れを見てみましょう。「ライブ」ページで損失が下がっていき、実行は履歴に残ります。</translation>
        </message>
        <message>
            <source>Fine-tune the sample</source>
            <translation>サンプルをファインチューニング</translation>
        </message>
        <message>
            <source>This PC</source>
            <translation>この PC</translation>
        </message>
        <message>
            <source>Needs attention</source>
            <translation>確認が必要</translation>
        </message>
        <message>
            <source>Recent runs</source>
            <translation>最近の実行</translation>
        </message>
        <message>
            <source>New run</source>
            <translation>新しい実行</translation>
        </message>
        <message>
            <source>All runs</source>
            <translation>すべての実行</translation>
        </message>
        <message>
            <source>Start %1 again</source>
            <translation>%1 を最初から開始</translation>
        </message>
        <message>
            <source>Leave it</source>
            <translation>そのままにする</translation>
        </message>
        <message>
            <source>Leave %1 as it is</source>
            <translation>%1 をそのままにする</translation>
        </message>
        <message>
            <source>Take the run off this list. It stays in the history.</source>
            <translation>この一覧から外します。実行は履歴に残ります。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::Legend</name>
        <message>
            <source>Legend: %1</source>
            <translation>凡例: %1</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::LineChart</name>
        <message>
            <source>%1 %2</source>
            <comment>series name, value</comment>
            <translation>%1 %2</translation>
        </message>
        <message numerus="yes">
            <source>%n value(s) not above zero cannot be shown on a log axis</source>
            <translation>
                <numerusform>0 以下の %n 個の値は対数軸に表示できません</numerusform>
            </translation>
        </message>
        <message>
            <source>No points yet.</source>
            <translation>データ点はまだありません。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::LivePage</name>
        <message>
            <source>The history cannot be read: %1</source>
            <translation>履歴を読み込めません: %1</translation>
        </message>
        <message>
            <source>No run is active.</source>
            <translation>実行中のものはありません。</translation>
        </message>
        <message>
            <source>A run that is started here is shown with its loss, its speed and what every step waited for.</source>
            <translation>ここで始めた実行の損失、速度、各ステップの待ち時間の原因が表示されます。</translation>
        </message>
        <message>
            <source>New run</source>
            <translation>新しい実行</translation>
        </message>
        <message>
            <source>History</source>
            <translation>履歴</translation>
        </message>
        <message>
            <source>While this run goes on, the machine does not fall asleep by itself.</source>
            <translation>この実行が続く間、コンピューターは自動的にスリープしません。</translation>
        </message>
        <message>
            <source>This system offers no way to keep the machine awake: it may fall asleep by itself while the run goes on.</source>
            <translation>このシステムではスリープを抑止できません。実行中でも自動的にスリープすることがあります。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::NoticeBar</name>
        <message>
            <source>Dismiss the message</source>
            <translation>メッセージを閉じる</translation>
        </message>
        <message>
            <source>Stop</source>
            <translation>停止</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::MainWindow</name>
        <message>
            <source>Try it</source>
            <translation>試す</translation>
        </message>
        <message>
            <source>A run is active. Stop it on the Live page before starting another.</source>
            <translation>実行中です。別の実行を始める前に「ライブ」ページで停止してください。</translation>
        </message>
        <message>
            <source>A run is active. Stop it on the Live page before resuming another.</source>
            <translation>実行中です。別の実行を再開する前に「ライブ」ページで停止してください。</translation>
        </message>
        <message>
            <source>The run failed. %1</source>
            <translation>実行は失敗しました。%1</translation>
        </message>
        <message>
            <source>Home</source>
            <translation>ホーム</translation>
        </message>
        <message>
            <source>New run</source>
            <translation>新しい実行</translation>
        </message>
        <message>
            <source>Live</source>
            <translation>ライブ</translation>
        </message>
        <message>
            <source>History</source>
            <translation>履歴</translation>
        </message>
        <message>
            <source>Pages</source>
            <translation>ページ</translation>
        </message>
        <message>
            <source>Quit</source>
            <translation>終了</translation>
        </message>
        <message>
            <source>Opening the model and the dataset…</source>
            <translation>モデルとデータセットを開いています…</translation>
        </message>
        <message>
            <source>Preparing files on disk: %1 of %2</source>
            <translation>ディスク上のファイルを準備しています: %1 / %2</translation>
        </message>
        <message>
            <source>Stopping…</source>
            <translation>停止しています…</translation>
        </message>
        <message>
            <source>Saving the run; the window closes when that is done.</source>
            <translation>実行を保存しています。終わるとウィンドウが閉じます。</translation>
        </message>
        <message>
            <source>Compare</source>
            <translation>比較</translation>
        </message>
        <message>
            <source>“%1” was not started, because “%2” failed. %3</source>
            <translation>“%2” が失敗したため、“%1” は開始しませんでした。%3</translation>
        </message>
        <message>
            <source>“%1” was not started, because another run was.</source>
            <translation>別の実行が始まったため、“%1” は開始しませんでした。</translation>
        </message>
        <message>
            <source>“%1” was not started, because “%2” was stopped.</source>
            <translation>“%2” が停止されたため、“%1” は開始しませんでした。</translation>
        </message>
        <message>
            <source>Opening the run…</source>
            <translation>実行を開いています…</translation>
        </message>
        <message>
            <source>The settings of this run cannot be read. %1</source>
            <translation>この実行の設定を読み取れません。%1</translation>
        </message>
        <message>
            <source>The desktop session ends; the run is being saved.</source>
            <translation>デスクトップのセッションが終了します。実行を保存しています。</translation>
        </message>
        <message>
            <source>The run was stopped and saved because the desktop session was about to end. Resume continues it from there.</source>
            <translation>デスクトップのセッションが終了しようとしたため、実行を停止して保存しました。「再開」で続きから実行できます。</translation>
        </message>
        <message>
            <source>No program opened the log. It is %1</source>
            <translation>ログを開くプログラムがありませんでした。ログは %1 にあります</translation>
        </message>
        <message>
            <source>About Millrace</source>
            <translation>Millrace について</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::MemoryPanel</name>
        <message>
            <source>Memory by tier</source>
            <translation>階層ごとのメモリ</translation>
        </message>
        <message>
            <source>measured peak %1</source>
            <translation>実測ピーク %1</translation>
        </message>
        <message>
            <source>planned %1</source>
            <translation>計画 %1</translation>
        </message>
        <message>
            <source>limit %1</source>
            <translation>上限 %1</translation>
        </message>
        <message>
            <source>Measured peak</source>
            <translation>実測ピーク</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ModelSection</name>
        <message>
            <source>Looking at the model…</source>
            <translation>モデルを調べています…</translation>
        </message>
        <message>
            <source>%1, %2 parameters, %3 layers of width %4</source>
            <translation>%1、パラメーター数 %2、%3 層、幅 %4</translation>
        </message>
        <message>
            <source>Vocabulary %1, at most %2 positions, stored as %3, %4, tokenizer: %5</source>
            <translation>語彙数 %1、最大位置 %2、保存形式 %3、%4、トークナイザー: %5</translation>
        </message>
        <message>
            <source>none</source>
            <translation>なし</translation>
        </message>
        <message>
            <source>Model</source>
            <translation>モデル</translation>
        </message>
        <message>
            <source>&amp;Model folder</source>
            <translation>モデルフォルダー(&amp;M)</translation>
        </message>
        <message>
            <source>Model folder</source>
            <translation>モデルフォルダー</translation>
        </message>
        <message>
            <source>A folder with config.json and *.safetensors. Drop it here.</source>
            <translation>config.json と *.safetensors のあるフォルダー。ここにドロップできます。</translation>
        </message>
        <message>
            <source>The plan shows what training it would need.</source>
            <translation>学習に必要なものは計画に表示されます。</translation>
        </message>
        <message>
            <source>On this PC…</source>
            <translation>この PC から…</translation>
        </message>
        <message>
            <source>It is an adapter. Choose its model here, and the adapter below, as the adapter to go on from.</source>
            <translation>これはアダプターです。ここではそのモデルを選択し、アダプターは下の「続きから学習するアダプター」で選択してください。</translation>
        </message>
        <message>
            <source>If it is a name on a hub, “On this PC…” and then “Get a model…” downloads it.</source>
            <translation>ハブ上の名前であれば、「この PC から…」から「モデルを取得…」でダウンロードできます。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::NewRunPage</name>
        <message>
            <source>%1 is not empty. Choose a new folder; an old run is continued from History.</source>
            <translation>%1 は空ではありません。新しいフォルダーを選んでください。以前の実行は「履歴」から続けられます。</translation>
        </message>
        <message>
            <source>Choose a model folder, and the plan appears here: how many bytes each memory would hold, and what binds.</source>
            <translation>モデルフォルダーを選ぶと、各メモリが何バイト必要になり、何が制約になるかがここに表示されます。</translation>
        </message>
        <message>
            <source>Choose a model folder.</source>
            <translation>モデルフォルダーを選んでください。</translation>
        </message>
        <message>
            <source>This model cannot be trained: see its message.</source>
            <translation>このモデルは学習できません。メッセージを確認してください。</translation>
        </message>
        <message>
            <source>Choose a training file.</source>
            <translation>学習ファイルを選んでください。</translation>
        </message>
        <message>
            <source>This dataset cannot be used: see its message.</source>
            <translation>このデータセットは使えません。メッセージを確認してください。</translation>
        </message>
        <message>
            <source>The plan is still being made; try again in a moment.</source>
            <translation>計画を作成中です。少し待ってからもう一度お試しください。</translation>
        </message>
        <message>
            <source>The run does not fit: see the plan.</source>
            <translation>この実行は収まりません。計画を確認してください。</translation>
        </message>
        <message>
            <source>The checkpoints do not fit on the disk: see the plan.</source>
            <translation>チェックポイントがディスクに収まりません。計画を確認してください。</translation>
        </message>
        <message>
            <source>A run is active. Stop it on the Live page before starting another.</source>
            <translation>実行中です。別の実行を始める前に「ライブ」ページで停止してください。</translation>
        </message>
        <message>
            <source>Copied to the clipboard.</source>
            <translation>クリップボードにコピーしました。</translation>
        </message>
        <message>
            <source>Output</source>
            <translation>出力</translation>
        </message>
        <message>
            <source>&amp;Name of the run</source>
            <translation>実行の名前(&amp;N)</translation>
        </message>
        <message>
            <source>Name of the run</source>
            <translation>実行の名前</translation>
        </message>
        <message>
            <source>Run f&amp;older (optional)</source>
            <translation>実行フォルダー (省略可)(&amp;O)</translation>
        </message>
        <message>
            <source>Run folder</source>
            <translation>実行フォルダー</translation>
        </message>
        <message>
            <source>Empty: a new folder in %1</source>
            <translation>空欄: %1 に新しいフォルダーを作成</translation>
        </message>
        <message>
            <source>Plan</source>
            <translation>計画</translation>
        </message>
        <message>
            <source>Copy as command line</source>
            <translation>コマンドラインとしてコピー</translation>
        </message>
        <message>
            <source>Start</source>
            <translation>開始</translation>
        </message>
        <message>
            <source>Start the run</source>
            <translation>実行を開始</translation>
        </message>
        <message>
            <source>Start the run (%1)</source>
            <translation>実行を開始 (%1)</translation>
        </message>
        <message>
            <source>Choose another policy to compare with.</source>
            <translation>比較には別の方式を選んでください。</translation>
        </message>
        <message>
            <source>Also set for this run: %1</source>
            <translation>この実行にはほかに次の設定があります: %1</translation>
        </message>
        <message>
            <source>Measuring…</source>
            <translation>測定中…</translation>
        </message>
        <message>
            <source>Measure again</source>
            <translation>もう一度測定</translation>
        </message>
        <message>
            <source>A run is active: what is measured beside it would be too slow.</source>
            <translation>実行中です。同時に測定すると遅い値になります。</translation>
        </message>
        <message>
            <source>The forecast is made from rates that were measured on this machine. If it was busy then, measure them again while nothing else is at work; it takes some seconds.</source>
            <translation>予測は、このマシンで測定した速度から計算されます。測定時にほかの処理が動いていた場合は、何も動いていないときにもう一度測定してください。数秒かかります。</translation>
        </message>
        <message>
            <source>%1 does not say where. Choose a folder, or write its whole path, from / or ~ on.</source>
            <translation>%1 では場所が決まりません。フォルダーを選択するか、/ または ~ から始まる完全なパスを入力してください。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::Notifier</name>
        <message>
            <source>Open</source>
            <translation>開く</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::PathEdit</name>
        <message>
            <source>Browse: %1</source>
            <translation>参照: %1</translation>
        </message>
        <message>
            <source>Datasets (*.jsonl *.json *.csv *.txt *.parquet *.gz *.zst);;All files (*)</source>
            <translation>データセット (*.jsonl *.json *.csv *.txt *.parquet *.gz *.zst);;すべてのファイル (*)</translation>
        </message>
        <message>
            <source>Browse…</source>
            <translation>参照…</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::LighterWays</name>
        <message>
            <source>AdamW, one block after the other</source>
            <translation>AdamW (1 ブロックずつ順に)</translation>
        </message>
        <message>
            <source>Every weight in less memory</source>
            <translation>すべての重みを少ないメモリで</translation>
        </message>
        <message>
            <source>Results differ from those of AdamW as it is; no step writes to an SSD.</source>
            <translation>通常の AdamW とは結果が異なります。どのステップも SSD には書き込みません。</translation>
        </message>
        <message>
            <source>AdamW, its state compact</source>
            <translation>AdamW (状態を圧縮)</translation>
        </message>
        <message>
            <source>Light optimizer, weights of 16 bits</source>
            <translation>軽量、16 ビットの重み</translation>
        </message>
        <message>
            <source>Light optimizer, weights of 24 bits</source>
            <translation>軽量、24 ビットの重み</translation>
        </message>
        <message>
            <source>%1 of host memory</source>
            <translation>ホストメモリ %1</translation>
        </message>
        <message>
            <source>%1 tokens/s</source>
            <translation>%1 トークン/秒</translation>
        </message>
        <message>
            <source>Use this</source>
            <translation>これを使う</translation>
        </message>
        <message>
            <source>Use this: %1</source>
            <translation>これを使う: %1</translation>
        </message>
        <message>
            <source>Policy %1</source>
            <translation>方式 %1</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::PlanPanel</name>
        <message>
            <source>Chosen: %1</source>
            <translation>選択の理由: %1</translation>
        </message>
        <message>
            <source>Planning…</source>
            <translation>計画中…</translation>
        </message>
        <message>
            <source>Does not fit. %1</source>
            <translation>収まりません。%1</translation>
        </message>
        <message>
            <source>Fits in memory, but not on the disk: see Checkpoints.</source>
            <translation>メモリには収まりますが、ディスクには収まりません。「チェックポイント」を確認してください。</translation>
        </message>
        <message>
            <source>Fits.</source>
            <translation>収まります。</translation>
        </message>
        <message>
            <source>Device: %1</source>
            <translation>デバイス: %1</translation>
        </message>
        <message>
            <source>Simulated link: its speed is set, not measured</source>
            <translation>模擬リンク: 速度は実測値ではなく設定値です</translation>
        </message>
        <message>
            <source>Optimizer: %1</source>
            <translation>オプティマイザー：%1</translation>
        </message>
        <message>
            <source>Precision: %1, recompute: %2</source>
            <translation>精度: %1、再計算: %2</translation>
        </message>
        <message>
            <source>Everything else</source>
            <translation>その他</translation>
        </message>
        <message>
            <source>%1 of %2</source>
            <translation>%1 / %2</translation>
        </message>
        <message>
            <source>One step (forecast)</source>
            <translation>1 ステップ (予測)</translation>
        </message>
        <message>
            <source>Copies in each step</source>
            <translation>1 ステップの転送量</translation>
        </message>
        <message>
            <source>Host to device</source>
            <translation>ホストからデバイスへ</translation>
        </message>
        <message>
            <source>Device to host</source>
            <translation>デバイスからホストへ</translation>
        </message>
        <message>
            <source>Disk to host</source>
            <translation>ディスクからホストへ</translation>
        </message>
        <message>
            <source>Host to disk</source>
            <translation>ホストからディスクへ</translation>
        </message>
        <message>
            <source>Written to disk by the run</source>
            <translation>実行がディスクに書き込む量</translation>
        </message>
        <message>
            <source>Checkpoints</source>
            <translation>チェックポイント</translation>
        </message>
        <message numerus="yes">
            <source>%n kept and one being written, %1 each; %2 free on the disk.</source>
            <translation>
                <numerusform>保持 %n 個と書き込み中 1 個、各 %1。ディスクの空きは %2 です。</numerusform>
            </translation>
        </message>
        <message>
            <source>Keep fewer, or choose a run folder on another disk.</source>
            <translation>保持数を減らすか、別のディスクの実行フォルダーを選んでください。</translation>
        </message>
        <message>
            <source>What would help</source>
            <translation>改善策</translation>
        </message>
        <message>
            <source>Policy: %1</source>
            <translation>方式: %1</translation>
        </message>
        <message>
            <source>Compared with: %1</source>
            <translation>比較する方式: %1</translation>
        </message>
        <message>
            <source>%1 does not fit. %2</source>
            <translation>%1 は収まりません。%2</translation>
        </message>
        <message>
            <source>Both fit.</source>
            <translation>どちらも収まります。</translation>
        </message>
        <message>
            <source>One step of %1</source>
            <translation>%1 の 1 ステップ (予測)</translation>
        </message>
        <message>
            <source>Memory of %1</source>
            <translation>%1 のメモリ</translation>
        </message>
        <message numerus="yes">
            <source>Only %n step(s): the model will hardly learn anything. Train for more epochs, or accumulate less.</source>
            <translation>
                <numerusform>わずか %n ステップです。モデルはほとんど何も学習しません。エポック数を増やすか、勾配の累積を減らしてください。</numerusform>
            </translation>
        </message>
        <message>
            <source>Both runs would use %1: choose another policy to compare with.</source>
            <translation>どちらの実行も %1 を使います。比較する別のポリシーを選択してください。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::PlanWords</name>
        <message>
            <source>The optimizer state needs %1 on disk, and no scratch folder is named for it.</source>
            <translation>オプティマイザーの状態にはディスク上で %1 が必要ですが、そのための作業フォルダーが指定されていません。</translation>
        </message>
        <message>
            <source>%1: needs %2, the budget is %3, %4 short.</source>
            <comment>a tier of memory</comment>
            <translation>%1: %2 が必要ですが、上限は %3 で、%4 足りません。</translation>
        </message>
        <message>
            <source>Weights</source>
            <translation>重み</translation>
        </message>
        <message>
            <source>Master weights, high half</source>
            <translation>マスター重み (上位)</translation>
        </message>
        <message>
            <source>Master weights, low half</source>
            <translation>マスター重み (下位)</translation>
        </message>
        <message>
            <source>Averages by row and column</source>
            <translation>行・列ごとの平均</translation>
        </message>
        <message>
            <source>Workspace of updates</source>
            <translation>更新の作業領域</translation>
        </message>
        <message>
            <source>Adam first moments</source>
            <translation>Adam 1 次モーメント</translation>
        </message>
        <message>
            <source>Adam second moments</source>
            <translation>Adam 2 次モーメント</translation>
        </message>
        <message>
            <source>Optimizer state</source>
            <translation>オプティマイザー状態</translation>
        </message>
        <message>
            <source>Gradient sums</source>
            <translation>勾配の累積</translation>
        </message>
        <message>
            <source>Visiting optimizer state</source>
            <translation>一時配置のオプティマイザー状態</translation>
        </message>
        <message>
            <source>State on its way from the disk</source>
            <translation>ディスクとの間で移動中の状態</translation>
        </message>
        <message>
            <source>Optimizer state on the disk</source>
            <translation>ディスク上のオプティマイザー状態</translation>
        </message>
        <message>
            <source>Weights on the disk</source>
            <translation>ディスク上の重み</translation>
        </message>
        <message>
            <source>Gradients on the disk</source>
            <translation>ディスク上の勾配</translation>
        </message>
        <message>
            <source>Shared between layers</source>
            <translation>層の間で共有</translation>
        </message>
        <message>
            <source>Weights moved both ways</source>
            <translation>両方向に動かした重み</translation>
        </message>
        <message>
            <source>Layer inputs in 8 bits</source>
            <translation>層の入力 (8 ビット)</translation>
        </message>
        <message>
            <source>Layer inputs on the disk</source>
            <translation>ディスク上の層の入力</translation>
        </message>
        <message>
            <source>Landing of uploads</source>
            <translation>アップロードの受け口</translation>
        </message>
        <message>
            <source>Landing of 4-bit weights</source>
            <translation>4 ビットの重みの受け口</translation>
        </message>
        <message>
            <source>State of urgent columns</source>
            <translation>緊急列のオプティマイザー状態</translation>
        </message>
        <message>
            <source>Gradients of urgent columns</source>
            <translation>緊急列の勾配</translation>
        </message>
        <message>
            <source>Sums of urgent columns over a window</source>
            <translation>緊急列の勾配のウィンドウ合計</translation>
        </message>
        <message>
            <source>Workspace of urgent columns</source>
            <translation>緊急列の作業領域</translation>
        </message>
        <message>
            <source>Energies of columns</source>
            <translation>列のエネルギー</translation>
        </message>
        <message>
            <source>Lists of columns</source>
            <translation>列の一覧</translation>
        </message>
        <message>
            <source>Gradients packed for the host</source>
            <translation>ホスト向けに詰めた勾配</translation>
        </message>
        <message>
            <source>Landing of the host&apos;s columns</source>
            <translation>ホストの列の受け口</translation>
        </message>
        <message>
            <source>Gradient sums over a window</source>
            <translation>ウィンドウの勾配の合計</translation>
        </message>
        <message>
            <source>Weights while they are in use</source>
            <translation>使用中の重み</translation>
        </message>
        <message>
            <source>Norm of a window</source>
            <translation>ウィンドウのノルム</translation>
        </message>
        <message>
            <source>Gradient sums of the tied head</source>
            <translation>共有ヘッドの勾配の累積</translation>
        </message>
        <message>
            <source>Gradients</source>
            <translation>勾配</translation>
        </message>
        <message>
            <source>Layer inputs</source>
            <translation>層の入力</translation>
        </message>
        <message>
            <source>Activations</source>
            <translation>活性値</translation>
        </message>
        <message>
            <source>Workspace</source>
            <translation>作業領域</translation>
        </message>
        <message>
            <source>Loss head</source>
            <translation>損失ヘッド</translation>
        </message>
        <message>
            <source>Product of the loss head</source>
            <translation>損失ヘッドの積</translation>
        </message>
        <message>
            <source>Batches</source>
            <translation>バッチ</translation>
        </message>
        <message>
            <source>Constants</source>
            <translation>定数</translation>
        </message>
        <message>
            <source>Scalars</source>
            <translation>スカラー</translation>
        </message>
        <message>
            <source>Staging for copies</source>
            <translation>転送用バッファー</translation>
        </message>
        <message>
            <source>Device memory</source>
            <translation>デバイスメモリ</translation>
        </message>
        <message>
            <source>Host memory</source>
            <translation>ホストメモリ</translation>
        </message>
        <message>
            <source>Disk</source>
            <translation>ディスク</translation>
        </message>
        <message>
            <source>exact</source>
            <translation>厳密</translation>
        </message>
        <message numerus="yes">
            <source>at most %n step(s) stale</source>
            <translation>
                <numerusform>最大 %n ステップの遅れ</numerusform>
            </translation>
        </message>
        <message>
            <source>%1, %2</source>
            <comment>a policy, how exact it is</comment>
            <translation>%1 (%2)</translation>
        </message>
        <message>
            <source>summed in flipped order</source>
            <translation>逆順に加算</translation>
        </message>
        <message>
            <source>clipped by groups</source>
            <translation>グループごとにクリップ</translation>
        </message>
        <message>
            <source>Frozen weights</source>
            <translation>固定した重み</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::PausePanel</name>
        <message>
            <source>Paused</source>
            <translation>一時停止</translation>
        </message>
        <message>
            <source>Try again</source>
            <translation>もう一度試す</translation>
        </message>
        <message>
            <source>Write it now; for when you have made some room.</source>
            <translation>今すぐ書き込みます。空きを作ったあとに使います。</translation>
        </message>
        <message>
            <source>Choose another folder…</source>
            <translation>別のフォルダーを選ぶ…</translation>
        </message>
        <message>
            <source>This and later checkpoints, and the trained model, are written there. Older checkpoints stay where they are.</source>
            <translation>今回以降のチェックポイントと学習済みモデルをそこに書き込みます。以前のチェックポイントは元の場所に残ります。</translation>
        </message>
        <message>
            <source>Go on without</source>
            <translation>保存せずに続ける</translation>
        </message>
        <message>
            <source>Train on without writing it. Should the run end before the next checkpoint, it goes on from the last one that was written.</source>
            <translation>書き込まずに学習を続けます。次のチェックポイントの前に実行が終わった場合は、最後に書き込まれたものから続きます。</translation>
        </message>
        <message>
            <source>Folder for checkpoints</source>
            <translation>チェックポイントのフォルダー</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::RunEditor</name>
        <message>
            <source>Undone: %1</source>
            <translation>元に戻しました: %1</translation>
        </message>
        <message>
            <source>Done again: %1</source>
            <translation>やり直しました: %1</translation>
        </message>
        <message>
            <source>Renamed to “%1”</source>
            <translation>名前を「%1」に変更</translation>
        </message>
        <message>
            <source>Changed a note</source>
            <translation>メモを変更</translation>
        </message>
        <message>
            <source>Added the tag “%1”</source>
            <translation>タグ「%1」を追加</translation>
        </message>
        <message>
            <source>Removed the tag “%1”</source>
            <translation>タグ「%1」を削除</translation>
        </message>
        <message numerus="yes">
            <source>Deleted %n run(s).</source>
            <translation>
                <numerusform>%n 件の実行を削除しました。</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>Restored %n run(s).</source>
            <translation>
                <numerusform>%n 件の実行を元に戻しました。</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::RunHeader</name>
        <message>
            <source>Try it</source>
            <translation>試す</translation>
        </message>
        <message>
            <source>Ask this run and the model it began with the same</source>
            <translation>この実行と元のモデルに同じ質問をします</translation>
        </message>
        <message>
            <source>%1 (at %2)</source>
            <comment>time left, clock time</comment>
            <translation>%1 (%2 頃)</translation>
        </message>
        <message>
            <source>Simulated link</source>
            <translation>模擬リンク</translation>
        </message>
        <message>
            <source>Stop</source>
            <translation>停止</translation>
        </message>
        <message>
            <source>End the run with what is saved already. It can be resumed from there.</source>
            <translation>すでに保存されたところまでで実行を終えます。そこから再開できます。</translation>
        </message>
        <message>
            <source>Stop and save</source>
            <translation>停止して保存</translation>
        </message>
        <message>
            <source>Close</source>
            <translation>閉じる</translation>
        </message>
        <message>
            <source>Run</source>
            <translation>実行</translation>
        </message>
        <message>
            <source>Copies were slowed down on purpose: times say how the plan behaves, not how fast this machine is.</source>
            <translation>転送を意図的に遅くしています。時間は計画の振る舞いを示すもので、このマシンの速さではありません。</translation>
        </message>
        <message>
            <source>Progress of the run</source>
            <translation>実行の進み具合</translation>
        </message>
        <message>
            <source>Finish this step, save a checkpoint and end the run. It can be resumed.</source>
            <translation>このステップを終え、チェックポイントを保存して実行を終えます。後で再開できます。</translation>
        </message>
        <message>
            <source>Step</source>
            <translation>ステップ</translation>
        </message>
        <message>
            <source>Elapsed</source>
            <translation>経過時間</translation>
        </message>
        <message>
            <source>Time left</source>
            <translation>残り時間</translation>
        </message>
        <message>
            <source>Speed</source>
            <translation>速度</translation>
        </message>
        <message>
            <source>Loss now</source>
            <translation>現在の損失</translation>
        </message>
        <message>
            <source>Best evaluation</source>
            <translation>最良の評価</translation>
        </message>
        <message>
            <source>%1 / %2</source>
            <comment>step of steps</comment>
            <translation>%1 / %2</translation>
        </message>
        <message>
            <source>%1 tokens/s</source>
            <translation>%1 トークン/秒</translation>
        </message>
        <message>
            <source>%1 against 50 steps earlier</source>
            <translation>50 ステップ前と比べて %1</translation>
        </message>
        <message>
            <source>Stopping</source>
            <translation>停止中</translation>
        </message>
        <message>
            <source>Saving…</source>
            <translation>保存中…</translation>
        </message>
        <message>
            <source>Another run is active; stop it first.</source>
            <translation>別の実行が進行中です。先に停止してください。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::RunNotes</name>
        <message>
            <source>Tags and note</source>
            <translation>タグとメモ</translation>
        </message>
        <message>
            <source>Words that runs have in common, with commas between them. “tag:word” in the filter finds them.</source>
            <translation>実行をまとめる言葉です。コンマで区切ります。絞り込みに「tag:言葉」と書くと見つかります。</translation>
        </message>
        <message>
            <source>&amp;Tags</source>
            <translation>タグ(&amp;T)</translation>
        </message>
        <message>
            <source>N&amp;ote</source>
            <translation>メモ(&amp;O)</translation>
        </message>
        <message>
            <source>Tags</source>
            <translation>タグ</translation>
        </message>
        <message>
            <source>Note</source>
            <translation>メモ</translation>
        </message>
        <message>
            <source>No run is chosen.</source>
            <translation>実行が選ばれていません。</translation>
        </message>
        <message numerus="yes">
            <source>%n run(s)</source>
            <translation>
                <numerusform>%n 件の実行</numerusform>
            </translation>
        </message>
        <message>
            <source>keep, baseline</source>
            <translation>保存, 基準</translation>
        </message>
        <message>
            <source>Choose one run to write a note.</source>
            <translation>メモを書くには実行を 1 件選んでください。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::RunPauseText</name>
        <message>
            <source>Paused: the disk is full</source>
            <translation>一時停止: ディスクの空きがありません</translation>
        </message>
        <message>
            <source>Paused: the folder cannot be written</source>
            <translation>一時停止: フォルダーに書き込めません</translation>
        </message>
        <message>
            <source>The trained model needs %1 in %2.</source>
            <translation>学習済みモデルには %2 に %1 が必要です。</translation>
        </message>
        <message>
            <source>The checkpoint of step %1 needs %2 in %3.</source>
            <translation>ステップ %1 のチェックポイントには %3 に %2 が必要です。</translation>
        </message>
        <message>
            <source>%1 are free there.</source>
            <translation>空きは %1 です。</translation>
        </message>
        <message>
            <source>It could not be written: %1.</source>
            <translation>書き込めませんでした: %1。</translation>
        </message>
        <message>
            <source>Nothing is lost: training waits, and goes on by itself when there is room.</source>
            <translation>失われたものはありません。学習は待機し、空きができると自動的に続きます。</translation>
        </message>
        <message>
            <source>Paused: your quota on this disk is reached</source>
            <translation>一時停止中: このディスクのクォータ (割り当て) に達しました</translation>
        </message>
        <message>
            <source>The system gives you no more space there.</source>
            <translation>そこではこれ以上の容量が割り当てられません。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::RunStatusText</name>
        <message>
            <source>Draft</source>
            <translation>下書き</translation>
        </message>
        <message>
            <source>Queued</source>
            <translation>待機中</translation>
        </message>
        <message>
            <source>Starting</source>
            <translation>開始中</translation>
        </message>
        <message>
            <source>Running</source>
            <translation>実行中</translation>
        </message>
        <message>
            <source>Pausing</source>
            <translation>一時停止中</translation>
        </message>
        <message>
            <source>Paused</source>
            <translation>一時停止</translation>
        </message>
        <message>
            <source>Saving</source>
            <translation>保存中</translation>
        </message>
        <message>
            <source>Done</source>
            <translation>完了</translation>
        </message>
        <message>
            <source>Stopped</source>
            <translation>停止</translation>
        </message>
        <message>
            <source>Failed</source>
            <translation>失敗</translation>
        </message>
        <message>
            <source>Interrupted</source>
            <translation>中断</translation>
        </message>
        <message>
            <source>Done, worse</source>
            <translation>完了 (悪化)</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::RunTableModel</name>
        <message>
            <source>%1 / %2</source>
            <comment>steps of all</comment>
            <translation>%1 / %2</translation>
        </message>
        <message>
            <source>State</source>
            <translation>状態</translation>
        </message>
        <message>
            <source>Name</source>
            <translation>名前</translation>
        </message>
        <message>
            <source>Best evaluation</source>
            <translation>最良の評価</translation>
        </message>
        <message>
            <source>Last loss</source>
            <translation>最新の損失</translation>
        </message>
        <message>
            <source>Steps</source>
            <translation>ステップ数</translation>
        </message>
        <message>
            <source>Tokens</source>
            <translation>トークン数</translation>
        </message>
        <message>
            <source>Active time</source>
            <translation>実行時間</translation>
        </message>
        <message>
            <source>Waiting</source>
            <translation>待ち</translation>
        </message>
        <message>
            <source>Tokens/s</source>
            <translation>トークン/秒</translation>
        </message>
        <message>
            <source>Peak device memory</source>
            <translation>デバイスメモリのピーク</translation>
        </message>
        <message>
            <source>Model</source>
            <translation>モデル</translation>
        </message>
        <message>
            <source>Dataset</source>
            <translation>データセット</translation>
        </message>
        <message>
            <source>Policy</source>
            <translation>方式</translation>
        </message>
        <message>
            <source>Date</source>
            <translation>日時</translation>
        </message>
        <message>
            <source>Tags</source>
            <translation>タグ</translation>
        </message>
        <message>
            <source>Note</source>
            <translation>メモ</translation>
        </message>
        <message>
            <source>Kept until</source>
            <translation>保管期限</translation>
        </message>
        <message>
            <source>Method</source>
            <translation>学習方法</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::RunTray</name>
        <message>
            <source>No run is active.</source>
            <translation>進行中の実行はありません。</translation>
        </message>
        <message>
            <source>Open</source>
            <translation>開く</translation>
        </message>
        <message>
            <source>Save and stop</source>
            <translation>保存して停止</translation>
        </message>
        <message>
            <source>Quit</source>
            <translation>終了</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::RunView</name>
        <message>
            <source>As a table…</source>
            <translation>表で表示…</translation>
        </message>
        <message>
            <source>All steps as a table</source>
            <translation>全ステップを表で表示</translation>
        </message>
        <message>
            <source>Log</source>
            <translation>ログ</translation>
        </message>
        <message>
            <source>Exports</source>
            <translation>エクスポート</translation>
        </message>
        <message>
            <source>Show all steps</source>
            <translation>全ステップを表示</translation>
        </message>
        <message>
            <source>One bar per step, as high as the step was long. Arrow keys move the cursor; the tool tip has all causes.</source>
            <translation>1 ステップにつき 1 本、高さがかかった時間です。矢印キーでカーソルを動かせます。ツールチップにすべての原因が出ます。</translation>
        </message>
        <message>
            <source>Time of each step</source>
            <translation>各ステップの時間</translation>
        </message>
        <message>
            <source>Where the time went</source>
            <translation>時間の内訳</translation>
        </message>
        <message>
            <source>Memory</source>
            <translation>メモリ</translation>
        </message>
        <message>
            <source>Forecast</source>
            <translation>予測</translation>
        </message>
        <message>
            <source>The time of a step as the plan predicted it.</source>
            <translation>計画が予測した 1 ステップの時間です。</translation>
        </message>
        <message>
            <source>all of the run, %1 steps</source>
            <translation>実行全体、%1 ステップ</translation>
        </message>
        <message>
            <source>steps %1 to %2</source>
            <translation>ステップ %1～%2</translation>
        </message>
        <message>
            <source>no timeline was kept of a step that lost time to it</source>
            <translation>これに時間を使ったステップのタイムラインは保存されていません</translation>
        </message>
        <message>
            <source>Click: the kept step that lost most to it.</source>
            <translation>クリック: これに最も時間を使った保存済みステップを開きます。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ScratchFolderEdit</name>
        <message>
            <source>The scratch folder cannot be used: see its message.</source>
            <translation>作業フォルダーは使えません。メッセージを確認してください。</translation>
        </message>
        <message>
            <source>The scratch folder is still being looked at; try again in a moment.</source>
            <translation>作業フォルダーを調べています。少し待ってからもう一度試してください。</translation>
        </message>
        <message>
            <source>Looking at the folder…</source>
            <translation>フォルダーを調べています…</translation>
        </message>
        <message>
            <source>%1, %2 free</source>
            <comment>file system</comment>
            <translation>%1、空き %2</translation>
        </message>
        <message>
            <source>%1 on %2, %3 free</source>
            <comment>file system, drive</comment>
            <translation>%2 上の %1、空き %3</translation>
        </message>
        <message>
            <source>%1 °C</source>
            <comment>of a drive</comment>
            <translation>%1 °C</translation>
        </message>
        <message>
            <source>Its speed is not known: measure it, and a plan can tell the time of a step that uses it.</source>
            <translation>速度は不明です。測定すると、このフォルダーを使うステップの時間を計画で予測できます。</translation>
        </message>
        <message>
            <source>Measured: reads %1, writes %2; both at once %3 and %4</source>
            <translation>測定値: 読み込み %1、書き込み %2、同時では %3 と %4</translation>
        </message>
        <message>
            <source>A file is filled, then read and written; it is removed at the end.</source>
            <translation>ファイルを作って読み書きし、最後に削除します。</translation>
        </message>
        <message>
            <source>Scratch folder</source>
            <translation>作業フォルダー</translation>
        </message>
        <message>
            <source>On an SSD, for policies that keep state there. Drop it here.</source>
            <translation>SSD 上のフォルダー。状態をそこに置く方式が使います。ここにドロップできます。</translation>
        </message>
        <message>
            <source>The run makes one file there and removes it at its end.</source>
            <translation>実行はそこにファイルを 1 つ作り、終了時に削除します。</translation>
        </message>
        <message>
            <source>Stop measuring</source>
            <translation>測定を中止</translation>
        </message>
        <message>
            <source>Measure its speed</source>
            <translation>速度を測定</translation>
        </message>
        <message>
            <source>Progress of the measurement</source>
            <translation>測定の進み具合</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ScratchSection</name>
        <message>
            <source>Scratch folder (optional)</source>
            <translation>作業フォルダー (省略可)</translation>
        </message>
        <message>
            <source>Scratch space</source>
            <translation>作業フォルダーの容量</translation>
        </message>
        <message>
            <source>The most bytes the run may hold in all scratch folders together.</source>
            <translation>実行がすべての作業フォルダーで合わせて使えるバイト数の上限です。</translation>
        </message>
        <message>
            <source>Automatic</source>
            <translation>自動</translation>
        </message>
        <message>
            <source>Disk writes</source>
            <translation>ディスク書き込みの上限</translation>
        </message>
        <message>
            <source>The most bytes the whole run may write to disk, checkpoints included: writing wears an SSD. A run that would write more is refused.</source>
            <translation>チェックポイントも含め、実行全体がディスクに書き込めるバイト数の上限です。書き込みは SSD を消耗させます。これを超える実行は始められません。</translation>
        </message>
        <message>
            <source>No limit</source>
            <translation>上限なし</translation>
        </message>
        <message>
            <source>Add a folder on another drive</source>
            <translation>別のドライブのフォルダーを追加</translation>
        </message>
        <message>
            <source>Drives work side by side: each holds as much as its speed allows.</source>
            <translation>ドライブは並行して動き、それぞれの速度に応じた量を受け持ちます。</translation>
        </message>
        <message>
            <source>The scratch folder %1 is named twice; name each folder once.</source>
            <translation>作業フォルダー %1 が 2 回指定されています。1 回だけ指定してください。</translation>
        </message>
        <message>
            <source>Two of these folders are on %1. A second drive makes a run faster, a second folder on the same one does not.</source>
            <translation>このうち 2 つのフォルダーは %1 上にあります。ドライブが増えると速くなりますが、同じドライブのフォルダーを増やしても速くなりません。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::SettingsForm</name>
        <message>
            <source>Steps of a block</source>
            <translation>1 ブロックのステップ数</translation>
        </message>
        <message>
            <source>Steps after which the next block is trained.</source>
            <translation>このステップ数ごとに次のブロックの学習へ移ります。</translation>
        </message>
        <message>
            <source>Automatic (two rounds)</source>
            <translation>自動 (2 巡)</translation>
        </message>
        <message>
            <source>Train for</source>
            <translation>学習の長さ</translation>
        </message>
        <message>
            <source>Passes over the dataset, or optimizer steps.</source>
            <translation>データセットを通す回数、またはオプティマイザーのステップ数です。</translation>
        </message>
        <message>
            <source>Learning rate</source>
            <translation>学習率</translation>
        </message>
        <message>
            <source>Peak of the schedule, for example 2e-5.</source>
            <translation>スケジュールの最大値です。例: 2e-5</translation>
        </message>
        <message>
            <source>Sequence length</source>
            <translation>シーケンス長</translation>
        </message>
        <message>
            <source>Tokens of one sequence; longer rows are cut.</source>
            <translation>1 シーケンスのトークン数です。長い行は切り詰められます。</translation>
        </message>
        <message>
            <source>Micro-batch</source>
            <translation>マイクロバッチ</translation>
        </message>
        <message>
            <source>Sequences that are on the device at the same time.</source>
            <translation>同時にデバイスに載るシーケンス数です。</translation>
        </message>
        <message>
            <source>Accumulate</source>
            <translation>勾配の累積</translation>
        </message>
        <message>
            <source>Micro-batches whose gradients are summed into one optimizer step.</source>
            <translation>1 回のオプティマイザーステップに勾配を合計するマイクロバッチ数です。</translation>
        </message>
        <message>
            <source>Precision</source>
            <translation>精度</translation>
        </message>
        <message>
            <source>bf16: 2 bytes a number in the model's products. fp32: 4 bytes. fp8: 1 byte in most of them, less exact; for GPUs from compute capability 8.9 on.</source>
            <translation>bf16: モデルの積で 1 つの数に 2 バイト。fp32: 4 バイト。fp8: その多くで 1 バイト、精度は下がる。compute capability 8.9 以上の GPU 用。</translation>
        </message>
        <message>
            <source>Automatic may take</source>
            <translation>「自動」の範囲</translation>
        </message>
        <message>
            <source>Exact policies give the bits of training on the device alone. Others hide the host&apos;s work by letting a part of each update come some steps late.</source>
            <translation>厳密な方式は、すべてをデバイスで学習した場合とビット単位で同じ結果になります。それ以外は、更新の一部を数ステップ遅らせてホストの処理を隠します。</translation>
        </message>
        <message>
            <source>Exact policies</source>
            <translation>厳密な方式のみ</translation>
        </message>
        <message>
            <source>Also those that lag</source>
            <translation>遅れを許す方式も</translation>
        </message>
        <message>
            <source>Recompute</source>
            <translation>再計算</translation>
        </message>
        <message>
            <source>Computes activations again in the backward pass instead of keeping them.</source>
            <translation>活性値を保持せず、逆伝播でもう一度計算します。</translation>
        </message>
        <message>
            <source>Layer inputs kept as</source>
            <translation>層の入力の保持形式</translation>
        </message>
        <message>
            <source>How the input of a block waits for the backward pass. 8 bits halve what long contexts take of memory, disk and link; results differ by rounding, and each block is recomputed.</source>
            <translation>ブロックの入力を逆伝播まで保持する形式です。8 ビットにすると、長いコンテキストが使うメモリ、ディスク、転送量が半分になります。丸めの分だけ結果が変わり、各ブロックを再計算します。</translation>
        </message>
        <message>
            <source>As they are: 2 bytes</source>
            <translation>そのまま: 2 バイト</translation>
        </message>
        <message>
            <source>8 bit: 1 byte</source>
            <translation>8 ビット: 1 バイト</translation>
        </message>
        <message>
            <source>Offload policy</source>
            <translation>オフロード方式</translation>
        </message>
        <message>
            <source>Where weights and optimizer state live, and who updates them.</source>
            <translation>重みとオプティマイザー状態をどこに置き、どこで更新するかです。</translation>
        </message>
        <message>
            <source>Device</source>
            <translation>デバイス</translation>
        </message>
        <message>
            <source>The device that computes the model.</source>
            <translation>モデルを計算する装置です。</translation>
        </message>
        <message>
            <source>Device memory</source>
            <translation>デバイスメモリ</translation>
        </message>
        <message>
            <source>The most bytes the run may hold on the device.</source>
            <translation>実行がデバイス上で使える最大量です。</translation>
        </message>
        <message>
            <source>Threads</source>
            <translation>スレッド数</translation>
        </message>
        <message>
            <source>Processor threads of the run.</source>
            <translation>実行が使うプロセッサーのスレッド数です。</translation>
        </message>
        <message>
            <source>Schedule</source>
            <translation>スケジュール</translation>
        </message>
        <message>
            <source>How the learning rate falls after the warm-up.</source>
            <translation>ウォームアップ後に学習率がどう下がるかです。</translation>
        </message>
        <message>
            <source>Warm-up</source>
            <translation>ウォームアップ</translation>
        </message>
        <message>
            <source>Steps in which the learning rate rises.</source>
            <translation>学習率が上がっていくステップ数です。</translation>
        </message>
        <message>
            <source>Weight decay</source>
            <translation>重み減衰</translation>
        </message>
        <message>
            <source>Applies to matrices; norms and biases have none.</source>
            <translation>行列に適用されます。ノルムとバイアスには適用されません。</translation>
        </message>
        <message>
            <source>Gradient clipping</source>
            <translation>勾配クリッピング</translation>
        </message>
        <message>
            <source>The largest norm of the whole gradient that is applied.</source>
            <translation>適用される勾配全体のノルムの上限です。</translation>
        </message>
        <message>
            <source>Light (Adafactor)</source>
            <translation>軽量 (Adafactor)</translation>
        </message>
        <message>
            <source>Light (AdaLomo)</source>
            <translation>軽量 (AdaLomo)</translation>
        </message>
        <message>
            <source>APOLLO-mini (experiment)</source>
            <translation>APOLLO-mini (実験的)</translation>
        </message>
        <message>
            <source>MeZO (experiment)</source>
            <translation>MeZO (実験的)</translation>
        </message>
        <message>
            <source>GRASS (experiment)</source>
            <translation>GRASS (実験的)</translation>
        </message>
        <message>
            <source>Normalised SGD (experiment)</source>
            <translation>正規化 SGD (実験的)</translation>
        </message>
        <message>
            <source>Exact: 4 bytes</source>
            <translation>正確: 4 バイト</translation>
        </message>
        <message>
            <source>24 bit: 3 bytes</source>
            <translation>24 ビット: 3 バイト</translation>
        </message>
        <message>
            <source>16 bit at random: 2 bytes</source>
            <translation>16 ビット (確率的): 2 バイト</translation>
        </message>
        <message>
            <source>Optimizer</source>
            <translation>オプティマイザー</translation>
        </message>
        <message>
            <source>AdamW keeps two numbers for every weight. A light optimizer keeps one for each row and column of a matrix, or none, and updates a layer right behind its backward pass: results differ, and much less memory is needed.</source>
            <translation>AdamWは重みごとに2つの数を保持します。軽量オプティマイザーは行列の行と列ごとに1つ、または何も保持せず、各層を逆伝播の直後に更新します。結果は異なりますが、必要なメモリは大幅に減ります。</translation>
        </message>
        <message>
            <source>Weights kept as</source>
            <translation>重みの保持形式</translation>
        </message>
        <message>
            <source>How a light optimizer keeps weights between steps. 24 bits give the result of 4 bytes within noise; 16 bits are rounded at random. AdamW keeps 4 bytes.</source>
            <translation>軽量オプティマイザーがステップ間で重みを保持する形式です。24 ビットの結果は誤差の範囲で 4 バイトと同じです。16 ビットは確率的に丸めます。AdamW は 4 バイトで保持します。</translation>
        </message>
        <message>
            <source>Adam beta 1</source>
            <translation>Adam β1</translation>
        </message>
        <message>
            <source>Memory of the first moment.</source>
            <translation>1 次モーメントの減衰率です。</translation>
        </message>
        <message>
            <source>Adam beta 2</source>
            <translation>Adam β2</translation>
        </message>
        <message>
            <source>Memory of the second moment.</source>
            <translation>2 次モーメントの減衰率です。</translation>
        </message>
        <message>
            <source>Seed</source>
            <translation>シード</translation>
        </message>
        <message>
            <source>Equal seed and plan give equal bits.</source>
            <translation>同じシードと計画なら、結果はビット単位で一致します。</translation>
        </message>
        <message>
            <source>Evaluate every</source>
            <translation>評価の間隔</translation>
        </message>
        <message>
            <source>Steps between evaluations.</source>
            <translation>評価と評価の間のステップ数です。</translation>
        </message>
        <message>
            <source>Checkpoint every</source>
            <translation>チェックポイントの間隔</translation>
        </message>
        <message>
            <source>Steps between checkpoints.</source>
            <translation>チェックポイントの間のステップ数です。</translation>
        </message>
        <message>
            <source>Checkpoint after</source>
            <translation>チェックポイントまでの時間</translation>
        </message>
        <message>
            <source>Writes a checkpoint when this much time has passed since the last one.</source>
            <translation>前のチェックポイントからこの時間がたつと、チェックポイントを保存します。</translation>
        </message>
        <message>
            <source>Checkpoints kept</source>
            <translation>保持するチェックポイント</translation>
        </message>
        <message>
            <source>Older ones are deleted.</source>
            <translation>古いものは削除されます。</translation>
        </message>
        <message>
            <source>Host memory</source>
            <translation>ホストメモリ</translation>
        </message>
        <message>
            <source>The most pinned memory the run may hold.</source>
            <translation>実行が使えるピン留めメモリの最大量です。</translation>
        </message>
        <message>
            <source>Simulated link</source>
            <translation>模擬リンク</translation>
        </message>
        <message>
            <source>Slows copies between host and device down, each way, to study stalls without a GPU. Results are labelled as simulated.</source>
            <translation>GPU なしで待ち時間を調べるため、ホストとデバイスの間の転送を各方向で遅くします。結果には模擬と表示されます。</translation>
        </message>
        <message>
            <source>Settings</source>
            <translation>設定</translation>
        </message>
        <message>
            <source>More settings</source>
            <translation>詳細設定</translation>
        </message>
        <message>
            <source>Epochs</source>
            <translation>エポック数</translation>
        </message>
        <message>
            <source>Steps</source>
            <translation>ステップ数</translation>
        </message>
        <message>
            <source>Epochs or steps</source>
            <translation>エポックまたはステップ</translation>
        </message>
        <message>
            <source>epochs</source>
            <translation>エポック</translation>
        </message>
        <message>
            <source>steps</source>
            <translation>ステップ</translation>
        </message>
        <message>
            <source>Automatic</source>
            <translation>自動</translation>
        </message>
        <message>
            <source>Nothing</source>
            <translation>なし</translation>
        </message>
        <message>
            <source>Norms and activation functions</source>
            <translation>正規化と活性化関数</translation>
        </message>
        <message>
            <source>Each block</source>
            <translation>ブロックごと</translation>
        </message>
        <message>
            <source>Processor (CPU)</source>
            <translation>プロセッサー (CPU)</translation>
        </message>
        <message>
            <source>GPU (CUDA)</source>
            <translation>GPU (CUDA)</translation>
        </message>
        <message>
            <source>Cosine to zero</source>
            <translation>コサインで 0 へ</translation>
        </message>
        <message>
            <source>Linear to zero</source>
            <translation>直線で 0 へ</translation>
        </message>
        <message>
            <source>Constant</source>
            <translation>一定</translation>
        </message>
        <message>
            <source>Automatic (2e-5)</source>
            <translation>自動 (2e-5)</translation>
        </message>
        <message>
            <source>Automatic (3 %, light: 5 %)</source>
            <translation>自動 (3 %、軽量は 5 %)</translation>
        </message>
        <message>
            <source>Off</source>
            <translation>オフ</translation>
        </message>
        <message>
            <source>Automatic (ten times a run)</source>
            <translation>自動 (実行中に 10 回)</translation>
        </message>
        <message>
            <source>Not by steps</source>
            <translation>ステップでは保存しない</translation>
        </message>
        <message>
            <source>Not by time</source>
            <translation>時間では保存しない</translation>
        </message>
        <message numerus="yes">
            <source> minute(s)</source>
            <translation>
                <numerusform> 分</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source> token(s)</source>
            <translation>
                <numerusform> トークン</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source> sequence(s)</source>
            <translation>
                <numerusform> シーケンス</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source> micro-batch(es)</source>
            <translation>
                <numerusform> マイクロバッチ</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source> step(s)</source>
            <translation>
                <numerusform> ステップ</numerusform>
            </translation>
        </message>
        <message>
            <source>Best checkpoint</source>
            <translation>最良のチェックポイント</translation>
        </message>
        <message>
            <source>An evaluation that is the best so far saves a checkpoint of its step. Without, the best of those that were saved anyway is kept.</source>
            <translation>評価がこれまでで最良のとき、そのステップのチェックポイントを保存します。オフの場合は、保存されたもののうち最良のものが残ります。</translation>
        </message>
        <message>
            <source>Keep the best by evaluation loss</source>
            <translation>評価損失が最良のものを残す</translation>
        </message>
        <message>
            <source>Automatic (2e-4)</source>
            <translation>自動 (2e-4)</translation>
        </message>
        <message>
            <source>Automatic (0.01)</source>
            <translation>自動 (0.01)</translation>
        </message>
        <message>
            <source>Automatic (0)</source>
            <translation>自動 (0)</translation>
        </message>
        <message>
            <source>Rank</source>
            <translation>ランク</translation>
        </message>
        <message>
            <source>Width of the adapter&apos;s matrices: a larger one learns more, and takes more memory.</source>
            <translation>アダプターの行列の幅です。大きいほど多くを学べますが、メモリも増えます。</translation>
        </message>
        <message>
            <source>Alpha</source>
            <translation>アルファ</translation>
        </message>
        <message>
            <source>The adapter's output is multiplied by alpha / rank.</source>
            <translation>アダプターの出力は「アルファ / ランク」倍されます。</translation>
        </message>
        <message>
            <source>Automatic (the rank)</source>
            <translation>自動 (ランクと同じ)</translation>
        </message>
        <message>
            <source>Modules</source>
            <translation>モジュール</translation>
        </message>
        <message>
            <source>Linear modules that get an adapter, for example q_proj,v_proj, or an expression for whole names between slashes.</source>
            <translation>アダプターを付ける線形モジュールです。例: q_proj,v_proj。スラッシュで囲むと、名前全体に対する正規表現になります。</translation>
        </message>
        <message>
            <source>All of the blocks</source>
            <translation>ブロックのすべて</translation>
        </message>
        <message>
            <source>Modules left out</source>
            <translation>除くモジュール</translation>
        </message>
        <message>
            <source>Modules that get no adapter, for example down_proj.</source>
            <translation>アダプターを付けないモジュールです。例: down_proj。</translation>
        </message>
        <message>
            <source>None</source>
            <translation>なし</translation>
        </message>
        <message>
            <source>Trained whole</source>
            <translation>全体を学習</translation>
        </message>
        <message>
            <source>Modules that are trained whole beside the adapter: embed_tokens, lm_head or both, with a comma between them.</source>
            <translation>アダプターと並べて全体を学習するモジュールです: embed_tokens、lm_head、または両方（コンマ区切り）。</translation>
        </message>
        <message>
            <source>Tokens trained</source>
            <translation>学習するトークン</translation>
        </message>
        <message>
            <source>Ids of tokens whose rows of the embedding are trained beside the adapter, for example 300,310-319: for chat tokens that the model does not know yet.</source>
            <translation>アダプターと並べて埋め込みの行を学習するトークンの ID です。例: 300,310-319。モデルがまだ知らないチャット用トークンに使います。</translation>
        </message>
        <message>
            <source>Blocks</source>
            <translation>ブロック</translation>
        </message>
        <message>
            <source>Blocks that get an adapter, for example 0-15,20.</source>
            <translation>アダプターを付けるブロックです。例: 0-15,20。</translation>
        </message>
        <message>
            <source>All</source>
            <translation>すべて</translation>
        </message>
        <message>
            <source>Scaling</source>
            <translation>倍率</translation>
        </message>
        <message>
            <source>Scales by alpha / √rank instead, so that a large rank learns as fast as a small one.</source>
            <translation>代わりに「アルファ / √ランク」倍します。ランクが大きくても小さいときと同じ速さで学習します。</translation>
        </message>
        <message>
            <source>By the root of the rank (rsLoRA)</source>
            <translation>ランクの平方根で割る (rsLoRA)</translation>
        </message>
        <message>
            <source>Lengths</source>
            <translation>長さ</translation>
        </message>
        <message>
            <source>Trains the length of each row of the adapted weights beside the adapter, which often learns more at a small rank. A step takes about a third longer.</source>
            <translation>アダプターを加えた重みの各行の長さも学習します。小さいランクでも多くを学べることがよくあります。1 ステップの時間は約3分の1長くなります。</translation>
        </message>
        <message>
            <source>Trained, too (DoRA)</source>
            <translation>長さも学習する (DoRA)</translation>
        </message>
        <message>
            <source>Dropout</source>
            <translation>ドロップアウト</translation>
        </message>
        <message>
            <source>Share of the adapter's input that is set to zero at random in training, against overfitting on little data. 0.05 to 0.1 is common.</source>
            <translation>学習中にアダプターの入力のうち、無作為にゼロにする割合です。少ないデータでの過学習を抑えます。0.05 から 0.1 がよく使われます。</translation>
        </message>
        <message>
            <source>Automatic (0, or that of the adapter)</source>
            <translation>自動 (0、またはアダプターの値)</translation>
        </message>
        <message>
            <source>Rate of B (LoRA+)</source>
            <translation>B の学習率 (LoRA+)</translation>
        </message>
        <message>
            <source>Learning rate of the adapter's second matrices, as a multiple of that of the first. 16 is common.</source>
            <translation>アダプターの2番目の行列の学習率を、1番目の行列の学習率の何倍にするか。16 がよく使われます。</translation>
        </message>
        <message>
            <source>Layers</source>
            <translation>層</translation>
        </message>
        <message>
            <source>Numbers of blocks, embedding and head, with commas between them.</source>
            <translation>ブロックの番号、embedding、head をコンマで区切って並べます。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::SettingsModel</name>
        <message>
            <source>not set</source>
            <translation>未設定</translation>
        </message>
        <message>
            <source>Setting</source>
            <translation>設定</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::StallLedgerModel</name>
        <message>
            <source>The time of the run, of its steps and of all beside them.</source>
            <translation>ステップとそれ以外を合わせた、実行全体の時間です。</translation>
        </message>
        <message>
            <source>Total</source>
            <translation>合計</translation>
        </message>
        <message>
            <source>%1 s</source>
            <translation>%1 秒</translation>
        </message>
        <message>
            <source>The time of these steps from start to end.</source>
            <translation>これらのステップの開始から終了までの時間です。</translation>
        </message>
        <message>
            <source>Went to</source>
            <translation>内訳</translation>
        </message>
        <message>
            <source>Time</source>
            <translation>時間</translation>
        </message>
        <message>
            <source>Per step</source>
            <translation>1 ステップあたり</translation>
        </message>
        <message>
            <source>Share</source>
            <translation>割合</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::StallStrip</name>
        <message>
            <source>Time of each step</source>
            <translation>各ステップの時間</translation>
        </message>
        <message>
            <source>step %1 · %2</source>
            <translation>ステップ %1 · %2</translation>
        </message>
        <message>
            <source>%1 · %2 %3</source>
            <comment>step and time, cause, its time</comment>
            <translation>%1 · %2 %3</translation>
        </message>
        <message>
            <source>No steps yet.</source>
            <translation>ステップはまだありません。</translation>
        </message>
        <message>
            <source>%1 steps, %2 a step. Compute %3. The longest wait: %4, %5.</source>
            <translation>%1 ステップ、1 ステップ %2。計算 %3。最長の待ち: %4、%5。</translation>
        </message>
        <message>
            <source>Step %1: %2</source>
            <translation>ステップ %1: %2</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::StallWords</name>
        <message>
            <source>Change of block</source>
            <translation>ブロックの交代</translation>
        </message>
        <message>
            <source>A trained block was put away, and the next one came to the device.</source>
            <translation>学習したブロックをしまい、次のブロックをデバイスに読み込みました。</translation>
        </message>
        <message>
            <source>Opening</source>
            <translation>準備</translation>
        </message>
        <message>
            <source>Late updates</source>
            <translation>遅延更新</translation>
        </message>
        <message>
            <source>Evaluation</source>
            <translation>評価</translation>
        </message>
        <message>
            <source>Checkpoints</source>
            <translation>チェックポイント</translation>
        </message>
        <message>
            <source>Answers</source>
            <translation>回答</translation>
        </message>
        <message>
            <source>Planning again</source>
            <translation>再計画</translation>
        </message>
        <message>
            <source>Paused</source>
            <translation>一時停止</translation>
        </message>
        <message>
            <source>Saving the model</source>
            <translation>モデルの保存</translation>
        </message>
        <message>
            <source>Data and weights were read and memory was taken, before the first step.</source>
            <translation>最初のステップの前に、データと重みを読み込み、メモリーを確保しました。</translation>
        </message>
        <message>
            <source>Updates that the next step would have made were made before the weights were looked at.</source>
            <translation>次のステップで行うはずだった更新を、重みを参照する前に行いました。</translation>
        </message>
        <message>
            <source>The model was evaluated on held-out data.</source>
            <translation>評価用データでモデルを評価しました。</translation>
        </message>
        <message>
            <source>Checkpoints were written, so that the run can be resumed.</source>
            <translation>再開できるように、チェックポイントを書き込みました。</translation>
        </message>
        <message>
            <source>Questions were answered while the run went on.</source>
            <translation>実行中に質問へ回答しました。</translation>
        </message>
        <message>
            <source>The run went on by another plan and was opened again from a checkpoint.</source>
            <translation>別の計画に切り替え、チェックポイントから開き直しました。</translation>
        </message>
        <message>
            <source>The run waited for room on the disk.</source>
            <translation>ディスクの空きを待っていました。</translation>
        </message>
        <message>
            <source>The trained model was written.</source>
            <translation>学習済みモデルを書き込みました。</translation>
        </message>
        <message>
            <source>Compute</source>
            <translation>計算</translation>
        </message>
        <message>
            <source>Upload</source>
            <translation>送信</translation>
        </message>
        <message>
            <source>Download</source>
            <translation>受信</translation>
        </message>
        <message>
            <source>Host update</source>
            <translation>ホスト更新</translation>
        </message>
        <message>
            <source>Disk</source>
            <translation>ディスク</translation>
        </message>
        <message>
            <source>Data</source>
            <translation>データ</translation>
        </message>
        <message>
            <source>Other</source>
            <translation>その他</translation>
        </message>
        <message>
            <source>The device was computing.</source>
            <translation>デバイスは計算していました。</translation>
        </message>
        <message>
            <source>The device waited for bytes from the host.</source>
            <translation>デバイスはホストからのデータを待っていました。</translation>
        </message>
        <message>
            <source>The device waited until bytes had left for the host.</source>
            <translation>デバイスはホストへの送り出しを待っていました。</translation>
        </message>
        <message>
            <source>The device waited for the optimizer on the host.</source>
            <translation>デバイスはホスト上のオプティマイザーを待っていました。</translation>
        </message>
        <message>
            <source>The device waited for the disk.</source>
            <translation>デバイスはディスクを待っていました。</translation>
        </message>
        <message>
            <source>The device waited for the next batch.</source>
            <translation>デバイスは次のバッチを待っていました。</translation>
        </message>
        <message>
            <source>The device waited for something else: starting a step, saving, a full queue.</source>
            <translation>デバイスはその他の処理 (ステップの開始、保存、満杯のキュー) を待っていました。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::StatusStrip</name>
        <message>
            <source>%1 %2 of %3</source>
            <translation>%1 %2 / %3</translation>
        </message>
        <message>
            <source>%1 %2</source>
            <translation>%1 %2</translation>
        </message>
        <message>
            <source>No run is active.</source>
            <translation>実行中のものはありません。</translation>
        </message>
        <message>
            <source>Open the Live page</source>
            <translation>「ライブ」ページを開く</translation>
        </message>
        <message>
            <source>%1: step %2 of %3</source>
            <translation>%1: ステップ %2 / %3</translation>
        </message>
        <message>
            <source>, paused</source>
            <translation>、一時停止中</translation>
        </message>
        <message>
            <source>, %1 left</source>
            <translation>、残り %1</translation>
        </message>
        <message>
            <source> (simulated link)</source>
            <translation> (模擬リンク)</translation>
        </message>
        <message>
            <source>Waiting %1 of the last minute</source>
            <translation>直近 1 分の待ち %1</translation>
        </message>
        <message>
            <source>Device</source>
            <translation>デバイス</translation>
        </message>
        <message>
            <source>Host</source>
            <translation>ホスト</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::StepTableModel</name>
        <message>
            <source>Step</source>
            <translation>ステップ</translation>
        </message>
        <message>
            <source>Loss</source>
            <translation>損失</translation>
        </message>
        <message>
            <source>Learning rate</source>
            <translation>学習率</translation>
        </message>
        <message>
            <source>Gradient norm</source>
            <translation>勾配ノルム</translation>
        </message>
        <message>
            <source>Tokens/s</source>
            <translation>トークン/秒</translation>
        </message>
        <message>
            <source>Time (ms)</source>
            <translation>時間 (ms)</translation>
        </message>
        <message>
            <source>%1 (ms)</source>
            <comment>where time went</comment>
            <translation>%1 (ms)</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::Toast</name>
        <message>
            <source>Undo</source>
            <translation>元に戻す</translation>
        </message>
        <message>
            <source>Dismiss the message</source>
            <translation>メッセージを閉じる</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::TokenPreview</name>
        <message>
            <source>Row %1: %2 tokens, %3 trained</source>
            <translation>%1 行目: %2 トークン、学習対象 %3</translation>
        </message>
        <message>
            <source>%1, cut at the sequence length</source>
            <translation>%1、シーケンス長で切り詰め</translation>
        </message>
        <message>
            <source>%1
Token id %2
Trained: part of the loss</source>
            <translation>%1
トークン ID %2
学習対象: 損失に含まれる</translation>
        </message>
        <message>
            <source>%1
Token id %2
Masked: read, not part of the loss</source>
            <translation>%1
トークン ID %2
マスク: 読むだけで損失に含まれない</translation>
        </message>
        <message>
            <source>First rows of the dataset as tokens</source>
            <translation>データセットの最初の数行 (トークン表示)</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::Units</name>
        <message>
            <source>%1 s</source>
            <translation>%1 秒</translation>
        </message>
        <message>
            <source>%1 h %2 min</source>
            <translation>%1 時間 %2 分</translation>
        </message>
        <message>
            <source>%1 min %2 s</source>
            <translation>%1 分 %2 秒</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::LossPanel</name>
        <message>
            <source>Loss (nats per token)</source>
            <translation>損失 (nat/トークン)</translation>
        </message>
        <message>
            <source>Log</source>
            <translation>対数</translation>
        </message>
        <message>
            <source>each step</source>
            <translation>各ステップ</translation>
        </message>
        <message>
            <source>smoothed</source>
            <translation>平滑化</translation>
        </message>
        <message>
            <source>evaluation</source>
            <translation>評価</translation>
        </message>
        <message>
            <source>The loss of each step.</source>
            <translation>各ステップの損失です。</translation>
        </message>
        <message>
            <source>Debiased exponential average over all steps; the past never changes.</source>
            <translation>全ステップの偏り補正付き指数移動平均です。過去の値は変わりません。</translation>
        </message>
        <message>
            <source>The loss on held-out data.</source>
            <translation>評価用データの損失です。</translation>
        </message>
        <message>
            <source>Smooth: </source>
            <translation>平滑化: </translation>
        </message>
        <message>
            <source> steps</source>
            <translation> ステップ</translation>
        </message>
        <message>
            <source>Steps the smoothed loss averages over</source>
            <translation>平滑化した損失が平均するステップ数</translation>
        </message>
        <message>
            <source>Steps the smoothed loss averages over; 1 is no smoothing</source>
            <translation>平滑化した損失が平均するステップ数。1 は平滑化なし</translation>
        </message>
        <message>
            <source>Log axis (L)</source>
            <translation>対数軸 (L)</translation>
        </message>
        <message>
            <source>Log axis for the loss</source>
            <translation>損失の対数軸</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::StepCharts</name>
        <message>
            <source>Link traffic (GB/s)</source>
            <translation>リンクの転送量 (GB/s)</translation>
        </message>
        <message>
            <source>to the device</source>
            <translation>デバイスへ</translation>
        </message>
        <message>
            <source>to the host</source>
            <translation>ホストへ</translation>
        </message>
        <message>
            <source>Bytes uploaded in a step over its time.</source>
            <translation>1 ステップで送ったバイト数をその時間で割った値です。</translation>
        </message>
        <message>
            <source>Bytes downloaded in a step over its time.</source>
            <translation>1 ステップで受け取ったバイト数をその時間で割った値です。</translation>
        </message>
        <message>
            <source>Disk traffic (GB/s)</source>
            <translation>ディスクの転送量 (GB/s)</translation>
        </message>
        <message>
            <source>read</source>
            <translation>読み込み</translation>
        </message>
        <message>
            <source>written</source>
            <translation>書き込み</translation>
        </message>
        <message>
            <source>Bytes read from the disk in a step over its time.</source>
            <translation>1 ステップでディスクから読んだバイト数をその時間で割った値です。</translation>
        </message>
        <message>
            <source>Bytes written to the disk in a step over its time.</source>
            <translation>1 ステップでディスクに書いたバイト数をその時間で割った値です。</translation>
        </message>
        <message>
            <source>Speed (tokens/s)</source>
            <translation>速度 (トークン/秒)</translation>
        </message>
        <message>
            <source>now</source>
            <translation>現在</translation>
        </message>
        <message>
            <source>%1 tokens/s</source>
            <translation>%1 トークン/秒</translation>
        </message>
        <message>
            <source>Learning rate</source>
            <translation>学習率</translation>
        </message>
        <message>
            <source>Gradient norm (before clipping)</source>
            <translation>勾配ノルム (クリッピング前)</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::RunTables</name>
        <message>
            <source>Where the time went</source>
            <translation>時間の内訳</translation>
        </message>
        <message>
            <source>Log of the run</source>
            <translation>実行のログ</translation>
        </message>
        <message>
            <source>Exports of the run</source>
            <translation>この実行のエクスポート</translation>
        </message>
        <message>
            <source>Steps of %1</source>
            <translation>%1 のステップ</translation>
        </message>
        <message>
            <source>Steps</source>
            <translation>ステップ数</translation>
        </message>
        <message>
            <source>Timeline of a step</source>
            <translation>ステップのタイムライン</translation>
        </message>
        <message>
            <source>Tasks</source>
            <translation>タスク</translation>
        </message>
        <message>
            <source>Figures of both runs</source>
            <translation>両方の実行の数値</translation>
        </message>
        <message>
            <source>Settings of both runs</source>
            <translation>両方の実行の設定</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::XAxis</name>
        <message>
            <source>step %1</source>
            <translation>ステップ %1</translation>
        </message>
        <message>
            <source>%1: %2 points, last %3, lowest %4 at step %5.</source>
            <translation>%1: %2 点、最新 %3、最小 %4 (ステップ %5)。</translation>
        </message>
        <message>
            <source>%1: %2 points, last %3, lowest %4 after %5.</source>
            <translation>%1: %2 点、最新 %3、最小 %4 (経過 %5)。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::LinePanel</name>
        <message>
            <source>Drag to zoom, double-click or press 0 for the whole run, Ctrl+wheel or + and - to zoom, arrow keys to move the cursor, L for a log axis.</source>
            <translation>ドラッグで拡大、ダブルクリックまたは 0 で実行全体、Ctrl+ホイールまたは + と - で拡大縮小、矢印キーでカーソル移動、L で対数軸。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::MachineSection</name>
        <message>
            <source>Machine</source>
            <translation>マシン</translation>
        </message>
        <message>
            <source>Energy of the device: %1</source>
            <translation>デバイスの消費電力量: %1</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::MachineWords</name>
        <message>
            <source>Utilization (%)</source>
            <translation>使用率 (%)</translation>
        </message>
        <message>
            <source>device</source>
            <translation>デバイス</translation>
        </message>
        <message>
            <source>Share of the time in which the device worked at all.</source>
            <translation>デバイスが動いていた時間の割合です。</translation>
        </message>
        <message>
            <source>device memory</source>
            <translation>デバイスメモリ</translation>
        </message>
        <message>
            <source>Share of the time in which the memory of the device was read or written.</source>
            <translation>デバイスのメモリが読み書きされていた時間の割合です。</translation>
        </message>
        <message>
            <source>Millrace</source>
            <translation>Millrace</translation>
        </message>
        <message>
            <source>Share of all processors that this program used.</source>
            <translation>全プロセッサーのうち、このプログラムが使った割合です。</translation>
        </message>
        <message>
            <source>all programs</source>
            <translation>全プログラム</translation>
        </message>
        <message>
            <source>Share of all processors that all programs used together.</source>
            <translation>全プロセッサーのうち、全プログラムが合わせて使った割合です。</translation>
        </message>
        <message>
            <source>Memory (GiB)</source>
            <translation>メモリ (GiB)</translation>
        </message>
        <message>
            <source>Memory of the device that all programs use.</source>
            <translation>全プログラムが使っているデバイスのメモリです。</translation>
        </message>
        <message>
            <source>Main memory that this program uses.</source>
            <translation>このプログラムが使っているメインメモリです。</translation>
        </message>
        <message>
            <source>available</source>
            <translation>空き</translation>
        </message>
        <message>
            <source>Main memory that programs may still take.</source>
            <translation>プログラムがまだ使えるメインメモリです。</translation>
        </message>
        <message>
            <source>PCIe (GB/s)</source>
            <translation>PCIe (GB/s)</translation>
        </message>
        <message>
            <source>to the device</source>
            <translation>デバイスへ</translation>
        </message>
        <message>
            <source>Bytes that the device received, in 20 ms of each second.</source>
            <translation>デバイスが受け取った量です (毎秒 20 ms 間の計測)。</translation>
        </message>
        <message>
            <source>to the host</source>
            <translation>ホストへ</translation>
        </message>
        <message>
            <source>Bytes that the device sent, in 20 ms of each second.</source>
            <translation>デバイスが送り出した量です (毎秒 20 ms 間の計測)。</translation>
        </message>
        <message>
            <source>Power (W)</source>
            <translation>電力 (W)</translation>
        </message>
        <message>
            <source>W</source>
            <translation>W</translation>
        </message>
        <message>
            <source>The device with its memory.</source>
            <translation>メモリを含むデバイス全体です。</translation>
        </message>
        <message>
            <source>processors</source>
            <translation>プロセッサー</translation>
        </message>
        <message>
            <source>All processor packages, without the main memory.</source>
            <translation>全プロセッサーパッケージです。メインメモリは含みません。</translation>
        </message>
        <message>
            <source>Temperature (°C)</source>
            <translation>温度 (°C)</translation>
        </message>
        <message>
            <source>°C</source>
            <translation>°C</translation>
        </message>
        <message>
            <source>The first processor package.</source>
            <translation>最初のプロセッサーパッケージです。</translation>
        </message>
        <message>
            <source>Clocks (MHz)</source>
            <translation>クロック (MHz)</translation>
        </message>
        <message>
            <source>MHz</source>
            <translation>MHz</translation>
        </message>
        <message>
            <source>The clock of its multiprocessors.</source>
            <translation>マルチプロセッサーのクロックです。</translation>
        </message>
        <message>
            <source>SSD</source>
            <translation>SSD</translation>
        </message>
        <message>
            <source>The warmest drive with a scratch folder of the run. Many slow down above 70 or 80 °C.</source>
            <translation>この学習の作業フォルダーがあるドライブのうち、最も温度の高いものです。多くは 70～80 °C を超えると遅くなります。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ForecastModel</name>
        <message>
            <source>Forecast</source>
            <translation>予測</translation>
        </message>
        <message>
            <source>Measured (median)</source>
            <translation>実測 (中央値)</translation>
        </message>
        <message>
            <source>Difference</source>
            <translation>差</translation>
        </message>
        <message>
            <source>no forecast yet</source>
            <translation>予測はまだありません</translation>
        </message>
        <message>
            <source>All parts on one scale: compute, then what the device waited for.</source>
            <translation>すべて同じ尺度です。計算、続いてデバイスが待ったもの。</translation>
        </message>
        <message>
            <source>Step time</source>
            <translation>ステップ時間</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ForecastPanel</name>
        <message>
            <source>Forecast and truth</source>
            <translation>予測と実測</translation>
        </message>
        <message>
            <source>Forecast and measured time of a step</source>
            <translation>1 ステップの予測時間と実測時間</translation>
        </message>
        <message numerus="yes">
            <source>median of %n step(s)</source>
            <translation>
                <numerusform>%n ステップの中央値</numerusform>
            </translation>
        </message>
        <message>
            <source> · no rates of this machine were known when the run was planned</source>
            <translation> · 計画時にこのマシンの速度が不明でした</translation>
        </message>
        <message>
            <source> · simulated link</source>
            <translation> · 模擬リンク</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::TierMap</name>
        <message>
            <source>Where the bytes are</source>
            <translation>バイトの置き場所</translation>
        </message>
        <message>
            <source>Bytes by layer, kind and tier</source>
            <translation>層・種類・階層ごとのバイト数</translation>
        </message>
        <message>
            <source>The plan of this run does not say where each layer lies.</source>
            <translation>この実行の計画には層ごとの置き場所が記録されていません。</translation>
        </message>
        <message>
            <source>This run has no plan that can be read.</source>
            <translation>この実行には読み取れる計画がありません。</translation>
        </message>
        <message>
            <source>%1: %2 of %3</source>
            <comment>tier, planned, limit</comment>
            <translation>%1: %2 / %3</translation>
        </message>
        <message>
            <source>%1: %2</source>
            <comment>tier, planned</comment>
            <translation>%1: %2</translation>
        </message>
        <message>
            <source>Bytes that the plan puts there, and the limit.</source>
            <translation>計画がそこに置く量と上限。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::TierMapModel</name>
        <message>
            <source>Device</source>
            <translation>デバイス</translation>
        </message>
        <message>
            <source>Host</source>
            <translation>ホスト</translation>
        </message>
        <message>
            <source>Disk</source>
            <translation>ディスク</translation>
        </message>
        <message>
            <source>Total</source>
            <translation>合計</translation>
        </message>
        <message>
            <source>%1 · %2: %3</source>
            <comment>layer, kind of bytes, bytes by tier</comment>
            <translation>%1 · %2: %3</translation>
        </message>
        <message>
            <source>nothing</source>
            <translation>なし</translation>
        </message>
        <message>
            <source>%1: %2</source>
            <translation>%1: %2</translation>
        </message>
        <message>
            <source>Layer</source>
            <translation>層</translation>
        </message>
        <message>
            <source>The weights that the device computes with.</source>
            <translation>デバイスが計算に使う重みです。</translation>
        </message>
        <message>
            <source>Weights</source>
            <translation>重み</translation>
        </message>
        <message>
            <source>Sums over micro-batches, and finished gradients.</source>
            <translation>マイクロバッチにわたる和と、完成した勾配。</translation>
        </message>
        <message>
            <source>Gradients</source>
            <translation>勾配</translation>
        </message>
        <message>
            <source>The exact copy of the weights that the optimizer updates, as far as the weights themselves are not part of it.</source>
            <translation>オプティマイザが更新する重みの正確な写しのうち、重み自体に含まれない部分。</translation>
        </message>
        <message>
            <source>Master</source>
            <translation>マスター</translation>
        </message>
        <message>
            <source>The two moments of AdamW.</source>
            <translation>AdamW の 2 つのモーメント。</translation>
        </message>
        <message>
            <source>Moments</source>
            <translation>モーメント</translation>
        </message>
        <message>
            <source>Activations, batches, workspace and slots for copies: of no layer.</source>
            <translation>活性値、バッチ、作業領域、転送用スロット (特定の層に属さないもの)。</translation>
        </message>
        <message>
            <source>Other</source>
            <translation>その他</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::TimelineSection</name>
        <message>
            <source>Timeline of a step</source>
            <translation>ステップのタイムライン</translation>
        </message>
        <message>
            <source>One bar per task of the step. Ctrl+wheel or + and - zoom, dragging or the arrow keys move, Home shows all. Comma and full stop select the task before and after, Up and Down another lane, Return what a wait waited for. Page keys show another step.</source>
            <translation>タスクごとに 1 本の棒です。Ctrl+ホイールか + と - で拡大・縮小、ドラッグか左右の矢印キーで移動、Home で全体表示。コンマとピリオドで前後のタスク、上下キーで別のレーン、Return で待っていた相手を選択します。Page キーで別のステップを表示します。</translation>
        </message>
        <message>
            <source>The kept step before (Page Up)</source>
            <translation>前の保存済みステップ (Page Up)</translation>
        </message>
        <message>
            <source>The next kept step (Page Down)</source>
            <translation>次の保存済みステップ (Page Down)</translation>
        </message>
        <message>
            <source>Kept step</source>
            <translation>保存済みステップ</translation>
        </message>
        <message>
            <source>A run keeps the timelines of some steps: one of every 50, later fewer, and the slowest.</source>
            <translation>実行は一部のステップのタイムラインを保存します: はじめは 50 ステップごと、その後は間隔を広げ、さらに最も遅いステップ。</translation>
        </message>
        <message>
            <source>Fit</source>
            <translation>全体</translation>
        </message>
        <message>
            <source>The whole step (Home)</source>
            <translation>ステップ全体 (Home)</translation>
        </message>
        <message>
            <source>Show the whole step</source>
            <translation>ステップ全体を表示</translation>
        </message>
        <message>
            <source>As a table…</source>
            <translation>表で表示…</translation>
        </message>
        <message>
            <source>All tasks of the step as a table</source>
            <translation>ステップの全タスクを表で表示</translation>
        </message>
        <message>
            <source>No timeline is kept yet. The first one is that of step 50, or of a step that is much slower than all before it.</source>
            <translation>タイムラインはまだ保存されていません。最初に保存されるのはステップ 50、またはそれまでより大幅に遅いステップです。</translation>
        </message>
        <message>
            <source>Step %1 · %2</source>
            <comment>number, why it was kept</comment>
            <translation>ステップ %1 · %2</translation>
        </message>
        <message>
            <source>Reading the timeline of step %1…</source>
            <translation>ステップ %1 のタイムラインを読み込み中…</translation>
        </message>
        <message>
            <source>Timeline of step %1</source>
            <translation>ステップ %1 のタイムライン</translation>
        </message>
        <message>
            <source>The timeline of step %1 cannot be read: %2</source>
            <translation>ステップ %1 のタイムラインを読み込めません: %2</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::TimelineTableModel</name>
        <message>
            <source>Lane</source>
            <translation>レーン</translation>
        </message>
        <message>
            <source>Task</source>
            <translation>タスク</translation>
        </message>
        <message>
            <source>Layer</source>
            <translation>層</translation>
        </message>
        <message>
            <source>Micro-batch</source>
            <translation>マイクロバッチ</translation>
        </message>
        <message>
            <source>Begins at</source>
            <translation>開始</translation>
        </message>
        <message>
            <source>Takes</source>
            <translation>所要時間</translation>
        </message>
        <message>
            <source>Moves</source>
            <translation>転送量</translation>
        </message>
        <message>
            <source>Rate</source>
            <translation>速度</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::StepTimelineChart</name>
        <message>
            <source>Timeline of a step</source>
            <translation>ステップのタイムライン</translation>
        </message>
        <message>
            <source>No step is shown.</source>
            <translation>表示中のステップはありません。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::TimelineText</name>
        <message numerus="yes">
            <source>Step %1 · %2 · %n task(s)</source>
            <translation>
                <numerusform>ステップ %1 · %2 · タスク %n 件</numerusform>
            </translation>
        </message>
        <message>
            <source>%1 · the longest wait: %2, %3</source>
            <comment>the step, cause, time</comment>
            <translation>%1 · 最長の待ち: %2、%3</translation>
        </message>
        <message>
            <source>until done: %1</source>
            <translation>完了待ち: %1</translation>
        </message>
        <message>
            <source>micro-batch %1</source>
            <translation>マイクロバッチ %1</translation>
        </message>
        <message>
            <source>at %1</source>
            <translation>開始 %1</translation>
        </message>
        <message>
            <source>takes %1</source>
            <translation>所要 %1</translation>
        </message>
        <message>
            <source>For</source>
            <translation>対象</translation>
        </message>
        <message>
            <source>Layer</source>
            <translation>層</translation>
        </message>
        <message>
            <source>Micro-batch</source>
            <translation>マイクロバッチ</translation>
        </message>
        <message>
            <source>Waits for lane</source>
            <translation>待ち先のレーン</translation>
        </message>
        <message>
            <source>Lane</source>
            <translation>レーン</translation>
        </message>
        <message>
            <source>Begins at</source>
            <translation>開始</translation>
        </message>
        <message>
            <source>Takes</source>
            <translation>所要時間</translation>
        </message>
        <message>
            <source>Moves</source>
            <translation>転送量</translation>
        </message>
        <message>
            <source>Rate</source>
            <translation>速度</translation>
        </message>
        <message numerus="yes">
            <source>and %n more here: zoom in</source>
            <translation>
                <numerusform>ほか %n 件がここにあります (拡大してください)</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::TimelineWords</name>
        <message>
            <source>Compute waits</source>
            <translation>計算の待ち</translation>
        </message>
        <message>
            <source>Forward</source>
            <translation>順伝播</translation>
        </message>
        <message>
            <source>Backward</source>
            <translation>逆伝播</translation>
        </message>
        <message>
            <source>Gradients</source>
            <translation>勾配</translation>
        </message>
        <message>
            <source>Optimizer</source>
            <translation>オプティマイザ</translation>
        </message>
        <message>
            <source>Weights</source>
            <translation>重み</translation>
        </message>
        <message>
            <source>Optimizer state</source>
            <translation>オプティマイザー状態</translation>
        </message>
        <message>
            <source>Layer inputs</source>
            <translation>層の入力</translation>
        </message>
        <message>
            <source>Batches and scalars</source>
            <translation>バッチとスカラー</translation>
        </message>
        <message>
            <source>Disk reads</source>
            <translation>ディスク読み込み</translation>
        </message>
        <message>
            <source>Disk writes</source>
            <translation>ディスク書き込み</translation>
        </message>
        <message>
            <source>Engine</source>
            <translation>エンジン</translation>
        </message>
        <message>
            <source>Compute</source>
            <translation>計算</translation>
        </message>
        <message>
            <source>In</source>
            <comment>copies to the device</comment>
            <translation>送信</translation>
        </message>
        <message>
            <source>Out</source>
            <comment>copies to the host</comment>
            <translation>受信</translation>
        </message>
        <message>
            <source>Host</source>
            <translation>ホスト</translation>
        </message>
        <message>
            <source>Disk in</source>
            <comment>reads from the disk</comment>
            <translation>ディスク読</translation>
        </message>
        <message>
            <source>Disk out</source>
            <comment>writes to the disk</comment>
            <translation>ディスク書</translation>
        </message>
        <message>
            <source>Compute tasks of the device; red where it waits.</source>
            <translation>デバイスの計算。赤は待ち時間です。</translation>
        </message>
        <message>
            <source>Copies from the host to the device.</source>
            <translation>ホストからデバイスへの転送。</translation>
        </message>
        <message>
            <source>Copies from the device to the host.</source>
            <translation>デバイスからホストへの転送。</translation>
        </message>
        <message>
            <source>The optimizer's work on the host's cores.</source>
            <translation>ホストのコア上でのオプティマイザの処理。</translation>
        </message>
        <message>
            <source>Reads from the disk to the host.</source>
            <translation>ディスクからホストへの読み込み。</translation>
        </message>
        <message>
            <source>Writes from the host to the disk.</source>
            <translation>ホストからディスクへの書き込み。</translation>
        </message>
        <message>
            <source>Work of the engine between steps.</source>
            <translation>エンジンがステップの間に行う処理。</translation>
        </message>
        <message>
            <source>Embedding</source>
            <translation>埋め込み</translation>
        </message>
        <message>
            <source>Head</source>
            <translation>ヘッド</translation>
        </message>
        <message>
            <source>Shared slots</source>
            <translation>共有スロット</translation>
        </message>
        <message>
            <source>Layer %1</source>
            <translation>層 %1</translation>
        </message>
        <message>
            <source>Group %1</source>
            <translation>グループ %1</translation>
        </message>
        <message>
            <source>the slowest until then</source>
            <translation>それまでで最も遅い</translation>
        </message>
        <message>
            <source>one of every %1</source>
            <translation>%1 ステップごと</translation>
        </message>
        <message>
            <source>waits for %1 · %2</source>
            <comment>cause, time</comment>
            <translation>%1 待ち · %2</translation>
        </message>
        <message>
            <source>%1 · micro-batch %2</source>
            <comment>layer</comment>
            <translation>%1 · マイクロバッチ %2</translation>
        </message>
        <message>
            <source>L%1</source>
            <comment>a layer, as short as can be</comment>
            <translation>L%1</translation>
        </message>
        <message>
            <source>Compute waits: %1</source>
            <translation>計算の待ち: %1</translation>
        </message>
        <message>
            <source>Fetch the batch</source>
            <translation>バッチの取得</translation>
        </message>
        <message>
            <source>Read from disk</source>
            <translation>ディスクから読み込み</translation>
        </message>
        <message>
            <source>Read weights from disk</source>
            <translation>重みをディスクから読む</translation>
        </message>
        <message>
            <source>Read frozen weights from disk</source>
            <translation>凍結した重みをディスクから読み込み</translation>
        </message>
        <message>
            <source>Write gradient to disk</source>
            <translation>勾配をディスクに書く</translation>
        </message>
        <message>
            <source>Save activations of a block</source>
            <translation>ブロックの活性値を保存</translation>
        </message>
        <message>
            <source>Load activations of a block</source>
            <translation>ブロックの活性値を読み戻し</translation>
        </message>
        <message>
            <source>Write layer input to disk</source>
            <translation>層の入力をディスクに書く</translation>
        </message>
        <message>
            <source>Read layer input from disk</source>
            <translation>層の入力をディスクから読む</translation>
        </message>
        <message>
            <source>Write to disk</source>
            <translation>ディスクへ書き込み</translation>
        </message>
        <message>
            <source>Fetch weights</source>
            <translation>重みの取得</translation>
        </message>
        <message>
            <source>Fetch frozen weights</source>
            <translation>固定された重みの取得</translation>
        </message>
        <message>
            <source>Fetch rows of the embedding</source>
            <translation>埋め込みの行の取得</translation>
        </message>
        <message>
            <source>Fetch optimizer state</source>
            <translation>オプティマイザー状態の取得</translation>
        </message>
        <message>
            <source>Store optimizer state</source>
            <translation>オプティマイザー状態の保存</translation>
        </message>
        <message>
            <source>Finish gradient</source>
            <translation>勾配の仕上げ</translation>
        </message>
        <message>
            <source>Save layer input</source>
            <translation>層の入力を保存</translation>
        </message>
        <message>
            <source>Load layer input</source>
            <translation>層の入力を読み戻し</translation>
        </message>
        <message>
            <source>Send gradient</source>
            <translation>勾配の送出</translation>
        </message>
        <message>
            <source>Send weights</source>
            <translation>重みの送出</translation>
        </message>
        <message>
            <source>Select urgent columns</source>
            <translation>緊急列の選択</translation>
        </message>
        <message>
            <source>Pack other columns</source>
            <translation>残りの列をまとめる</translation>
        </message>
        <message>
            <source>Add gradient on host</source>
            <translation>ホストで勾配を加算</translation>
        </message>
        <message>
            <source>Add gradient on device</source>
            <translation>デバイスで勾配を加算</translation>
        </message>
        <message>
            <source>Upload other columns</source>
            <translation>残りの列を送信</translation>
        </message>
        <message>
            <source>Scatter other columns</source>
            <translation>残りの列を配置</translation>
        </message>
        <message>
            <source>Move column ownership</source>
            <translation>列の所有を移動</translation>
        </message>
        <message>
            <source>Gradient norm, part</source>
            <translation>勾配ノルム (部分)</translation>
        </message>
        <message>
            <source>Gradient norm, sum</source>
            <translation>勾配ノルム (合計)</translation>
        </message>
        <message>
            <source>Send loss and norm</source>
            <translation>損失とノルムの送出</translation>
        </message>
        <message>
            <source>Update on device</source>
            <translation>デバイスで更新</translation>
        </message>
        <message>
            <source>Update on host</source>
            <translation>ホストで更新</translation>
        </message>
        <message>
            <source>Checkpoint</source>
            <translation>チェックポイント</translation>
        </message>
        <message>
            <source>Evaluation</source>
            <translation>評価</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::PolicyChoice</name>
        <message>
            <source>Compare with</source>
            <translation>比較する方式</translation>
        </message>
        <message>
            <source>Trains twice on the same data with the same seed and settings, one run after the other, and shows both beside each other.</source>
            <translation>同じデータ、同じシード、同じ設定で 2 回、順番に学習し、結果を並べて表示します。</translation>
        </message>
        <message>
            <source>Policy to compare with</source>
            <translation>比較する方式</translation>
        </message>
        <message>
            <source>The second run starts when the first is done: at the same time they would disturb each other's times.</source>
            <translation>2 つ目は 1 つ目の完了後に始まります。同時に実行すると互いの時間に影響するためです。</translation>
        </message>
        <message>
            <source>Automatic</source>
            <translation>自動</translation>
        </message>
        <message>
            <source>Policies</source>
            <translation>方式の一覧</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::PolicyWords</name>
        <message>
            <source>all on the card</source>
            <translation>すべて GPU 上</translation>
        </message>
        <message>
            <source>state in RAM</source>
            <translation>オプティマイザー状態を RAM に</translation>
        </message>
        <message>
            <source>state in RAM, late by one step</source>
            <translation>オプティマイザー状態を RAM に、1 ステップ遅れ</translation>
        </message>
        <message>
            <source>state shared</source>
            <translation>オプティマイザー状態を分担</translation>
        </message>
        <message>
            <source>hot columns first</source>
            <translation>重要な列を優先</translation>
        </message>
        <message>
            <source>weights in RAM</source>
            <translation>重みを RAM に</translation>
        </message>
        <message>
            <source>on the SSD</source>
            <translation>SSD に置く</translation>
        </message>
        <message>
            <source>%1 (%2)</source>
            <comment>plain name of a policy, technical name</comment>
            <translation>%1（%2）</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::PlanForecast</name>
        <message>
            <source>One step (forecast)</source>
            <translation>1 ステップ (予測)</translation>
        </message>
        <message>
            <source>%1 tokens per step, about %2 tokens/s</source>
            <translation>1 ステップ %1 トークン、約 %2 トークン/秒</translation>
        </message>
        <message numerus="yes">
            <source>%n step(s), about %1</source>
            <translation>
                <numerusform>%n ステップ、約 %1</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ComparisonWords</name>
        <message>
            <source>%1: %2 times faster per step than %3</source>
            <translation>%1 は 1 ステップあたり %3 の %2 倍速く</translation>
        </message>
        <message>
            <source>%1: %2 times slower per step than %3</source>
            <translation>%1 は 1 ステップに %3 の %2 倍の時間がかかり</translation>
        </message>
        <message>
            <source>%1: as fast per step as %2</source>
            <translation>%1 の 1 ステップの速さは %2 と同じで</translation>
        </message>
        <message>
            <source>stalled %1 instead of %2</source>
            <translation>待ち時間は %2 に対して %1</translation>
        </message>
        <message>
            <source>held-out loss %1 against %2 at step %3</source>
            <translation>評価用データの損失はステップ %3 で %2 に対して %1</translation>
        </message>
        <message>
            <source>smoothed loss %1 against %2 at step %3</source>
            <translation>平滑化した損失はステップ %3 で %2 に対して %1</translation>
        </message>
        <message>
            <source>%1, %2; %3.</source>
            <comment>speed, waiting, loss</comment>
            <translation>%1、%2、%3 です。</translation>
        </message>
        <message>
            <source>%1, %2.</source>
            <comment>speed, waiting</comment>
            <translation>%1、%2 です。</translation>
        </message>
        <message>
            <source>So far, %1</source>
            <translation>ここまで: %1</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ComparisonModel</name>
        <message>
            <source>Policy</source>
            <translation>方式</translation>
        </message>
        <message>
            <source>Updates</source>
            <translation>更新</translation>
        </message>
        <message>
            <source>Steps</source>
            <translation>ステップ</translation>
        </message>
        <message>
            <source>Wall time</source>
            <translation>所要時間</translation>
        </message>
        <message>
            <source>Mean step</source>
            <translation>平均ステップ時間</translation>
        </message>
        <message>
            <source>Tokens/s</source>
            <translation>トークン/秒</translation>
        </message>
        <message>
            <source>Stalled</source>
            <translation>待ち時間の割合</translation>
        </message>
        <message>
            <source>Upload per step</source>
            <translation>1 ステップの送信量</translation>
        </message>
        <message>
            <source>Download per step</source>
            <translation>1 ステップの受信量</translation>
        </message>
        <message>
            <source>Peak device memory</source>
            <translation>デバイスメモリのピーク</translation>
        </message>
        <message>
            <source>Peak host memory</source>
            <translation>ホストメモリのピーク</translation>
        </message>
        <message>
            <source>Loss (smoothed)</source>
            <translation>損失 (平滑化)</translation>
        </message>
        <message>
            <source>Best evaluation</source>
            <translation>最良の評価</translation>
        </message>
        <message>
            <source>Exact: the same numbers as without offload. Stale: the weights of a step lack the newest updates, at most of so many steps.</source>
            <translation>厳密: オフロードなしと同じ数値になります。遅れ: ステップの重みに最新の更新が含まれず、その数は最大でこのステップ数です。</translation>
        </message>
        <message>
            <source>The whole run: steps, evaluations and checkpoints, without pauses.</source>
            <translation>実行全体の時間です。ステップ、評価、チェックポイントを含み、中断は含みません。</translation>
        </message>
        <message>
            <source>The share of the steps' time in which the device waited.</source>
            <translation>ステップの時間のうち、デバイスが待っていた割合です。</translation>
        </message>
        <message>
            <source>Bytes over the link (PCIe) in a step, on average.</source>
            <translation>1 ステップにリンク (PCIe) を通ったバイト数の平均です。</translation>
        </message>
        <message>
            <source>%1 / %2</source>
            <comment>steps of all</comment>
            <translation>%1 / %2</translation>
        </message>
        <message>
            <source>%1 points</source>
            <comment>difference of percentages</comment>
            <translation>%1 ポイント</translation>
        </message>
        <message>
            <source>Second to first</source>
            <translation>1 つ目との比</translation>
        </message>
        <message>
            <source>Trains</source>
            <translation>学習する部分</translation>
        </message>
        <message>
            <source>everything</source>
            <translation>すべて</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::StepBarsModel</name>
        <message>
            <source>Updates</source>
            <translation>更新</translation>
        </message>
        <message>
            <source>Mean step</source>
            <translation>平均ステップ時間</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::StepBarsPanel</name>
        <message>
            <source>Where the time of a step goes</source>
            <translation>1 ステップの時間の内訳</translation>
        </message>
        <message>
            <source>mean of all steps, both on one scale</source>
            <translation>全ステップの平均、同じ目盛り</translation>
        </message>
        <message>
            <source>Mean time of a step of both runs</source>
            <translation>両方の実行の平均ステップ時間</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::LossOverlay</name>
        <message>
            <source>Loss (nats per token)</source>
            <translation>損失 (nat/トークン)</translation>
        </message>
        <message>
            <source>Log</source>
            <translation>対数</translation>
        </message>
        <message>
            <source>Log axis (L)</source>
            <translation>対数軸 (L)</translation>
        </message>
        <message>
            <source>Log axis for the loss</source>
            <translation>損失の対数軸</translation>
        </message>
        <message>
            <source>%1, held out</source>
            <translation>%1 (評価用データ)</translation>
        </message>
        <message>
            <source>Debiased exponential average over %1 steps.</source>
            <translation>%1 ステップの偏り補正付き指数移動平均です。</translation>
        </message>
        <message>
            <source>held out</source>
            <translation>評価用データ</translation>
        </message>
        <message>
            <source>The loss on held-out data, in the colour of its run.</source>
            <translation>評価用データの損失です。色は実行ごとに同じです。</translation>
        </message>
        <message>
            <source>Unit of the horizontal axis</source>
            <translation>横軸の単位</translation>
        </message>
        <message>
            <source>Steps</source>
            <translation>ステップ</translation>
        </message>
        <message>
            <source>Time</source>
            <translation>時間</translation>
        </message>
        <message>
            <source>Active time since each run began, without pauses</source>
            <translation>各実行の開始からの経過時間 (休止を除く)</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::CompareHeader</name>
        <message>
            <source>Comparison</source>
            <translation>比較</translation>
        </message>
        <message>
            <source>All charts</source>
            <translation>すべてのグラフ</translation>
        </message>
        <message>
            <source>Show this run with all its charts</source>
            <translation>この実行のすべてのグラフを表示</translation>
        </message>
        <message>
            <source>step %1 of %2</source>
            <translation>ステップ %1 / %2</translation>
        </message>
        <message>
            <source>All charts of %1</source>
            <translation>%1 のすべてのグラフ</translation>
        </message>
        <message>
            <source>Not only the policy differs. %1.</source>
            <translation>方式のほかにも違いがあります。%1。</translation>
        </message>
        <message>
            <source>The link is simulated: its speed is set, not measured.</source>
            <translation>リンクは模擬です。速度は測定値ではなく設定値です。</translation>
        </message>
        <message>
            <source>Not started</source>
            <translation>未開始</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::CompareView</name>
        <message>
            <source>Where the time went: first run</source>
            <translation>時間の内訳: 1 つ目の実行</translation>
        </message>
        <message>
            <source>Where the time went: second run</source>
            <translation>時間の内訳: 2 つ目の実行</translation>
        </message>
        <message>
            <source>Figures</source>
            <translation>数値</translation>
        </message>
        <message>
            <source>“%1” starts when “%2” is done.</source>
            <translation>“%2” が完了すると “%1” が始まります。</translation>
        </message>
        <message>
            <source>The comparison appears with the first steps.</source>
            <translation>最初のステップとともに比較が表示されます。</translation>
        </message>
        <message>
            <source>%1 · no steps yet</source>
            <translation>%1 · まだステップがありません</translation>
        </message>
        <message>
            <source>%1 · all %2 steps</source>
            <translation>%1 · 全 %2 ステップ</translation>
        </message>
        <message>
            <source>Settings that differ</source>
            <translation>異なる設定</translation>
        </message>
        <message>
            <source>Show all</source>
            <translation>すべて表示</translation>
        </message>
        <message>
            <source>Show all settings</source>
            <translation>すべての設定を表示</translation>
        </message>
        <message>
            <source>Also those that are the same in both runs</source>
            <translation>両方の実行で同じ設定も表示します</translation>
        </message>
        <message numerus="yes">
            <source>All %n setting(s) are the same</source>
            <translation>
                <numerusform>%n 項目の設定はすべて同じです</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%1 of %n setting(s)</source>
            <translation>
                <numerusform>%n 項目中 %1 項目</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ComparePage</name>
        <message>
            <source>The history cannot be read: %1</source>
            <translation>履歴を読み込めません: %1</translation>
        </message>
        <message>
            <source>Nothing is compared yet.</source>
            <translation>まだ何も比較していません。</translation>
        </message>
        <message>
            <source>Tick “Compare with” on the New run page to train under two policies, one after the other, or choose two runs in History.</source>
            <translation>「新しい実行」のページで「比較する方式」にチェックを入れると、2 つの方式で順番に学習します。履歴で 2 つの実行を選んで比較することもできます。</translation>
        </message>
        <message>
            <source>New run</source>
            <translation>新しい実行</translation>
        </message>
        <message>
            <source>History</source>
            <translation>履歴</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::LookMenu</name>
        <message>
            <source>Appearance</source>
            <translation>表示</translation>
        </message>
        <message>
            <source>Appearance and language</source>
            <translation>表示と言語</translation>
        </message>
        <message>
            <source>Colours</source>
            <translation>配色</translation>
        </message>
        <message>
            <source>Language</source>
            <translation>言語</translation>
        </message>
        <message>
            <source>As the desktop</source>
            <translation>デスクトップに合わせる</translation>
        </message>
        <message>
            <source>Light</source>
            <translation>ライト</translation>
        </message>
        <message>
            <source>Dark</source>
            <translation>ダーク</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::OutcomeWords</name>
        <message>
            <source>not a number</source>
            <translation>非数</translation>
        </message>
        <message>
            <source>Worse than before training: %1 against %2 at step 0.</source>
            <translation>学習前より悪化しました: ステップ 0 の %2 に対して %1 です。</translation>
        </message>
        <message>
            <source>The learning rate is probably too high.</source>
            <translation>学習率が高すぎると思われます。</translation>
        </message>
        <message>
            <source>It was best at step %1 (%2): train for fewer steps.</source>
            <translation>最も良かったのはステップ %1 (%2) です。ステップ数を減らしてください。</translation>
        </message>
        <message>
            <source>%1 %2</source>
            <comment>what happened, why</comment>
            <translation>%1%2</translation>
        </message>
        <message>
            <source>%1 (step %2)</source>
            <translation>%1 (ステップ %2)</translation>
        </message>
        <message>
            <source>Before training: %1</source>
            <translation>学習前: %1</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::TemplateChoice</name>
        <message>
            <source>Chat template</source>
            <translation>チャットテンプレート</translation>
        </message>
        <message>
            <source>Jinja templates (*.jinja *.jinja2 *.j2 *.txt);;All files (*)</source>
            <translation>Jinja テンプレート (*.jinja *.jinja2 *.j2 *.txt);;すべてのファイル (*)</translation>
        </message>
        <message>
            <source>ChatML</source>
            <translation>ChatML</translation>
        </message>
        <message>
            <source>Llama 3</source>
            <translation>Llama 3</translation>
        </message>
        <message>
            <source>a template of your own</source>
            <translation>独自のテンプレート</translation>
        </message>
        <message>
            <source>The model is taught to chat with %1.</source>
            <translation>モデルに %1 での会話を教えます。</translation>
        </message>
        <message>
            <source>Chat template:</source>
            <translation>チャットテンプレート:</translation>
        </message>
        <message>
            <source>The form of Qwen and many others; right if in doubt</source>
            <translation>Qwen など多くのモデルの形式。迷ったらこれを選んでください</translation>
        </message>
        <message>
            <source>The form of Llama 3; right for its base models</source>
            <translation>Llama 3 の形式。そのベースモデルに適しています</translation>
        </message>
        <message>
            <source>From a file…</source>
            <translation>ファイルから…</translation>
        </message>
        <message>
            <source>A Jinja chat template, as another model has in its folder</source>
            <translation>ほかのモデルのフォルダーにあるような Jinja のチャットテンプレート</translation>
        </message>
        <message>
            <source>Choose another</source>
            <translation>選び直す</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::TryChoices</name>
        <message>
            <source>%1, as it is now</source>
            <translation>%1（現在の状態）</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::TryAsker</name>
        <message>
            <source>The run has ended.</source>
            <translation>実行は終了しました。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::SessionController</name>
        <message>
            <source>The run has ended.</source>
            <translation>実行は終了しました。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::TryForm</name>
        <message>
            <source>Prompt</source>
            <translation>プロンプト</translation>
        </message>
        <message>
            <source>System text</source>
            <translation>システム文</translation>
        </message>
        <message>
            <source>Temperature</source>
            <translation>温度</translation>
        </message>
        <message>
            <source>Top-p</source>
            <translation>Top-p</translation>
        </message>
        <message>
            <source>Most tokens</source>
            <translation>最大トークン数</translation>
        </message>
        <message>
            <source>Seed</source>
            <translation>シード</translation>
        </message>
        <message>
            <source>Prompt for both models</source>
            <translation>両方のモデルへの質問</translation>
        </message>
        <message>
            <source>Optional: how the model shall answer</source>
            <translation>省略可: モデルの答え方</translation>
        </message>
        <message>
            <source>0: always the most likely token</source>
            <translation>0: 常に最も確率の高いトークン</translation>
        </message>
        <message>
            <source>The share of probability that is kept</source>
            <translation>残す確率の割合</translation>
        </message>
        <message>
            <source>Equal seeds give equal answers</source>
            <translation>同じシードなら同じ答えになります</translation>
        </message>
        <message>
            <source>Ask</source>
            <translation>質問する</translation>
        </message>
        <message>
            <source>Ask both, one after the other (Ctrl+Return)</source>
            <translation>両方に順番に質問します（Ctrl+Return）</translation>
        </message>
        <message>
            <source>Stop</source>
            <translation>停止</translation>
        </message>
        <message>
            <source>Stop answering (Esc)</source>
            <translation>回答を止めます（Esc）</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::TryColumn</name>
        <message>
            <source>Last</source>
            <translation>最新</translation>
        </message>
        <message>
            <source>Step %1, the best</source>
            <translation>ステップ %1（最良）</translation>
        </message>
        <message>
            <source>Step %1</source>
            <translation>ステップ %1</translation>
        </message>
        <message>
            <source>No model yet: choose the folder of one.</source>
            <translation>モデルがまだありません。フォルダーを選んでください。</translation>
        </message>
        <message>
            <source>No tuned model yet: try the base model, or finish a run.</source>
            <translation>調整済みモデルがまだありません。ベースモデルを試すか、実行を完了してください。</translation>
        </message>
        <message>
            <source>The model has no chat template: it read plain text.</source>
            <translation>このモデルにはチャットテンプレートがないため、プレーンテキストを読みました。</translation>
        </message>
        <message>
            <source>Waiting for the end of a step…</source>
            <translation>ステップの終わりを待っています…</translation>
        </message>
        <message>
            <source>Waiting for its turn…</source>
            <translation>順番を待っています…</translation>
        </message>
        <message>
            <source>Loading the model…</source>
            <translation>モデルを読み込んでいます…</translation>
        </message>
        <message>
            <source>Answering…</source>
            <translation>回答しています…</translation>
        </message>
        <message>
            <source>Stopped.</source>
            <translation>停止しました。</translation>
        </message>
        <message numerus="yes">
            <source>%n token(s)</source>
            <translation>
                <numerusform>%n トークン</numerusform>
            </translation>
        </message>
        <message>
            <source>%1 tokens/s</source>
            <translation>%1 トークン/秒</translation>
        </message>
        <message>
            <source>cut at the most tokens</source>
            <translation>最大トークン数で打ち切り</translation>
        </message>
        <message>
            <source>answered after step %1</source>
            <translation>ステップ %1 の後に回答</translation>
        </message>
        <message>
            <source>Choose a model folder</source>
            <translation>モデルのフォルダーを選ぶ</translation>
        </message>
        <message>
            <source>Base</source>
            <translation>ベース</translation>
        </message>
        <message>
            <source>Tuned</source>
            <translation>調整済み</translation>
        </message>
        <message>
            <source>%1: model or run</source>
            <translation>%1: モデルまたは実行</translation>
        </message>
        <message>
            <source>%1: weights</source>
            <translation>%1: 重み</translation>
        </message>
        <message>
            <source>%1: answer</source>
            <translation>%1: 回答</translation>
        </message>
        <message>
            <source>%1: what the model reads</source>
            <translation>%1: モデルが読む文</translation>
        </message>
        <message>
            <source>%1: choose a model folder</source>
            <translation>%1: モデルのフォルダーを選ぶ</translation>
        </message>
        <message>
            <source>The answer appears here.</source>
            <translation>ここに回答が表示されます。</translation>
        </message>
        <message>
            <source>Text that the model reads</source>
            <translation>モデルが読む文</translation>
        </message>
        <message>
            <source>The model ended its answer at once, without a word.</source>
            <translation>モデルは何も出力せず、すぐに回答を終えました。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::TryPage</name>
        <message>
            <source>Try it</source>
            <translation>試す</translation>
        </message>
        <message>
            <source>One prompt, asked of two models one after the other with the same seed. A run that goes on answers between two steps and trains on as before.</source>
            <translation>同じプロンプトと同じシードで、二つのモデルに順番に質問します。実行中のものはステップの合間に答え、学習はそのまま続きます。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ResumeWords</name>
        <message>
            <source>Resume</source>
            <translation>再開</translation>
        </message>
        <message>
            <source>Start again</source>
            <translation>最初から開始</translation>
        </message>
        <message>
            <source>Continue this run from its last checkpoint</source>
            <translation>この実行を最後のチェックポイントから続けます</translation>
        </message>
        <message>
            <source>It ended before its first checkpoint: it starts again from the beginning, as it was asked for then</source>
            <translation>最初のチェックポイントの前に終わった実行です。当時の指定のまま最初から開始します</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::Glossary</name>
        <message>
            <source>Policies: where weights and optimizer state live</source>
            <translation>方式: 重みとオプティマイザー状態の置き場所</translation>
        </message>
        <message>
            <source>The plan</source>
            <translation>計画</translation>
        </message>
        <message>
            <source>Causes of stalls</source>
            <translation>ステップが待つもの</translation>
        </message>
        <message>
            <source>Settings</source>
            <translation>設定</translation>
        </message>
        <message>
            <source>Everywhere</source>
            <translation>どの画面でも</translation>
        </message>
        <message>
            <source>New run</source>
            <translation>新しい実行</translation>
        </message>
        <message>
            <source>History</source>
            <translation>履歴</translation>
        </message>
        <message>
            <source>Charts</source>
            <translation>グラフ</translation>
        </message>
        <message>
            <source>Timeline of a step</source>
            <translation>ステップのタイムライン</translation>
        </message>
        <message>
            <source>Try it</source>
            <translation>試す</translation>
        </message>
        <message>
            <source>stale</source>
            <translation>遅れ</translation>
        </message>
        <message>
            <source>Pack</source>
            <translation>詰める</translation>
        </message>
        <message>
            <source>nats per token</source>
            <translation>トークンあたりの nat</translation>
        </message>
        <message>
            <source>Weights, gradients and optimizer state are all on the device. It is the fastest where they fit.</source>
            <translation>重み、勾配、オプティマイザー状態をすべてデバイスに置きます。収まる場合は最速です。</translation>
        </message>
        <message>
            <source>The optimizer state is in host memory, and the processor updates the weights there.</source>
            <translation>オプティマイザー状態をホストメモリに置き、プロセッサーがそこで重みを更新します。</translation>
        </message>
        <message>
            <source>Works like &quot;state in RAM&quot;, but the processor&apos;s update comes one step late and so costs no time of its own.</source>
            <translation>「オプティマイザー状態を RAM に」と同じですが、プロセッサーによる更新を 1 ステップ遅らせて、その時間を隠します。</translation>
        </message>
        <message>
            <source>The optimizer state is in host memory. Device and processor each make a part of every update at the same time.</source>
            <translation>オプティマイザー状態をホストメモリに置き、各更新をデバイスとプロセッサーが同時に分担します。</translation>
        </message>
        <message>
            <source>The columns that matter most are updated on the device at every step. The processor updates the others once in a window of steps.</source>
            <translation>重要な列はデバイスで毎ステップ更新し、残りはプロセッサーが数ステップのウィンドウごとに 1 回更新します。</translation>
        </message>
        <message>
            <source>Weights and optimizer state are in host memory, and layers visit the device one after the other.</source>
            <translation>重みとオプティマイザー状態をホストメモリに置き、層を順番にデバイスへ送ります。</translation>
        </message>
        <message>
            <source>Works like &quot;weights in RAM&quot;, with the optimizer state on an SSD as well; layers are read and written while others compute.</source>
            <translation>「重みを RAM に」に加えて、オプティマイザー状態を SSD に置きます。ほかの層が計算している間に読み書きします。</translation>
        </message>
        <message>
            <source>The result has the same bits as training on the device alone.</source>
            <translation>結果は、すべてをデバイスで学習した場合とビット単位で一致します。</translation>
        </message>
        <message>
            <source>A part of the weights lags behind by at most so many steps. The result differs a little from exact training.</source>
            <translation>重みの一部が、最大でそのステップ数だけ遅れます。結果は厳密な学習とわずかに異なります。</translation>
        </message>
        <message>
            <source>The gradient of each layer is clipped by itself and not by the norm of the whole gradient.</source>
            <translation>勾配全体のノルムではなく、層ごとに勾配をクリップします。</translation>
        </message>
        <message>
            <source>The share of each update that is made after the step has ended, while the next one computes.</source>
            <translation>各更新のうち、ステップの終了後、次のステップの計算中に行う割合です。</translation>
        </message>
        <message>
            <source>Micro-batches go through one layer after the other, so that each layer visits the device once a step.</source>
            <translation>マイクロバッチを層ごとにまとめて計算し、各層がデバイスへ移るのをステップごとに 1 回にします。</translation>
        </message>
        <message>
            <source>The memory of the GPU. For the CPU device it is a part of the machine&apos;s memory that plays that role.</source>
            <translation>GPU のメモリです。CPU デバイスでは、その役をするメインメモリの一部です。</translation>
        </message>
        <message>
            <source>The machine&apos;s main memory, as far as it is set aside for copies to the device.</source>
            <translation>メインメモリのうち、デバイスとの転送のために確保する分です。</translation>
        </message>
        <message>
            <source>Each weight has 32 bits; this half of them is what the model computes with in bf16.</source>
            <translation>各重みの 32 ビットのうち、bf16 での計算に使う半分です。</translation>
        </message>
        <message>
            <source>The rest of each weight keeps small updates from being lost: the other 16 bits, or 8 that stand for them.</source>
            <translation>各重みの残りの部分で、小さな更新が失われないようにします。残りの 16 ビット、またはそれに代わる 8 ビットです。</translation>
        </message>
        <message>
            <source>A light optimizer keeps these running means of squared gradients instead of Adam&apos;s moments: one number for each row and column of a matrix.</source>
            <translation>軽量オプティマイザーは Adam のモーメントの代わりに、勾配の二乗の移動平均を行列の行と列ごとに 1 つずつ保持します。</translation>
        </message>
        <message>
            <source>For each weight the running mean of its gradient.</source>
            <translation>重みごとの、勾配の移動平均です。</translation>
        </message>
        <message>
            <source>For each weight the running mean of its squared gradient, which sets the size of its steps.</source>
            <translation>重みごとの、勾配の 2 乗の移動平均です。更新の大きさを決めます。</translation>
        </message>
        <message>
            <source>The gradients of all micro-batches of a step, added up.</source>
            <translation>1 ステップの全マイクロバッチの勾配を足し合わせたものです。</translation>
        </message>
        <message>
            <source>Tensors that the forward pass keeps because the backward pass needs them.</source>
            <translation>逆伝播で必要になるため、順伝播が保持する値です。</translation>
        </message>
        <message>
            <source>The activation that one layer hands to the next. The rest of a layer can be computed again from it.</source>
            <translation>層から次の層へ渡る値です。これがあれば層の残りの値を計算し直せます。</translation>
        </message>
        <message>
            <source>Memory for the last layer, which compares predictions with the tokens that should come.</source>
            <translation>予測と正解のトークンを比べる最後の層のためのメモリです。</translation>
        </message>
        <message>
            <source>Memory that computations use for a moment.</source>
            <translation>計算が一時的に使うメモリです。</translation>
        </message>
        <message>
            <source>Memory that bytes pass through on their way between host and device.</source>
            <translation>ホストとデバイスの間で転送するデータが通るメモリです。</translation>
        </message>
        <message>
            <source>Urgent columns are those that zenflow (hot columns first) updates at every step.</source>
            <translation>緊急列とは、zenflow（重要な列を優先）が毎ステップ更新する列です。</translation>
        </message>
        <message>
            <source>The gradients of the other columns since their last update, added up.</source>
            <translation>ほかの列の、前回の更新以降の勾配の合計です。</translation>
        </message>
        <message>
            <source>Together with Accumulate this is the batch size: a step trains on the product of both.</source>
            <translation>「勾配の累積」との積がバッチサイズです。1 ステップでその数だけ学習します。</translation>
        </message>
        <message>
            <source>A larger number trains on more sequences in a step without taking more device memory.</source>
            <translation>大きくすると、デバイスメモリを増やさずに 1 ステップで学習するシーケンスが増えます。</translation>
        </message>
        <message>
            <source>How far the weights move in a step. A loss that rises or jumps asks for a smaller one.</source>
            <translation>1 ステップで重みがどれだけ動くかです。損失が上がったり跳ねたりするときは小さくします。</translation>
        </message>
        <message>
            <source>How many tokens the model sees at once. Memory and time grow with it.</source>
            <translation>モデルが一度に見るトークン数です。増やすとメモリと時間も増えます。</translation>
        </message>
        <message>
            <source>Takes less device memory. Each block costs about a third more computation, norms and activation functions little.</source>
            <translation>デバイスメモリが減る代わりに計算が増えます。ブロックごとでは約 3 分の 1、正規化と活性化関数だけならわずかです。</translation>
        </message>
        <message>
            <source>Small steps at first, until the running means of the optimizer are known.</source>
            <translation>オプティマイザーの移動平均が定まるまで、最初は小さく更新します。</translation>
        </message>
        <message>
            <source>Pinned memory stays where it is, so the GPU can copy to and from it by itself.</source>
            <translation>ピン留めメモリは移動しないため、GPU が直接読み書きできます。</translation>
        </message>
        <message>
            <source>For study on a machine without a GPU; leave it off to train.</source>
            <translation>GPU のないマシンで調べるための設定です。学習するときはオフにします。</translation>
        </message>
        <message>
            <source>Short sequences share a row, each by itself, so that less is computed on padding.</source>
            <translation>短いシーケンスを互いに独立したまま 1 行に詰め、パディングの計算を減らします。</translation>
        </message>
        <message>
            <source>The unit of the loss: how surprised the model is by each token. Less is better.</source>
            <translation>損失の単位で、モデルが各トークンにどれだけ驚くかを表します。小さいほど良い値です。</translation>
        </message>
        <message>
            <source>Home, New run, Live, History, Compare, Try it</source>
            <translation>ホーム、新しい実行、ライブ、履歴、比較、試す</translation>
        </message>
        <message>
            <source>This page</source>
            <translation>このページ</translation>
        </message>
        <message>
            <source>Quit</source>
            <translation>終了</translation>
        </message>
        <message>
            <source>Start the run</source>
            <translation>実行を開始</translation>
        </message>
        <message>
            <source>Find a run</source>
            <translation>実行を探す</translation>
        </message>
        <message>
            <source>Rename the run</source>
            <translation>実行の名前を変更</translation>
        </message>
        <message>
            <source>Edit tags</source>
            <translation>タグを編集</translation>
        </message>
        <message>
            <source>Edit the note</source>
            <translation>メモを編集</translation>
        </message>
        <message>
            <source>Show tags and notes beside the runs</source>
            <translation>実行の横にタグとメモを表示</translation>
        </message>
        <message>
            <source>Delete runs</source>
            <translation>実行を削除</translation>
        </message>
        <message>
            <source>Undo a change of the history</source>
            <translation>履歴の変更を元に戻す</translation>
        </message>
        <message>
            <source>Redo it</source>
            <translation>やり直す</translation>
        </message>
        <message>
            <source>Move the cursor by a step, with Shift by ten</source>
            <translation>カーソルを 1 ステップ動かす (Shift で 10)</translation>
        </message>
        <message>
            <source>Zoom; so does the wheel with Ctrl</source>
            <translation>拡大と縮小 (Ctrl とホイールでも)</translation>
        </message>
        <message>
            <source>Show all steps</source>
            <translation>すべてのステップを表示</translation>
        </message>
        <message>
            <source>Logarithmic scale</source>
            <translation>対数目盛</translation>
        </message>
        <message>
            <source>The kept step before, or after</source>
            <translation>前または次の記録されたステップ</translation>
        </message>
        <message>
            <source>The task before, or after</source>
            <translation>前または次のタスク</translation>
        </message>
        <message>
            <source>Show the chosen task as large as the chart</source>
            <translation>選んだタスクをグラフいっぱいに表示</translation>
        </message>
        <message>
            <source>Ask</source>
            <translation>質問する</translation>
        </message>
        <message>
            <source>Stop the answers</source>
            <translation>回答を止める</translation>
        </message>
        <message>
            <source>The run computes with them and does not change them, so they have no gradients and no optimizer state.</source>
            <translation>計算には使いますが変更しないため、勾配もオプティマイザー状態もありません。</translation>
        </message>
        <message>
            <source>It needs little more memory than the model itself. The model changes less than by training everything.</source>
            <translation>必要なメモリはモデル自体より少し多いだけです。すべてを学習するときほど大きくは変わりません。</translation>
        </message>
        <message>
            <source>Twice the rank is twice the parameters of the adapter. Ranks from 8 to 64 are usual.</source>
            <translation>ランクを 2 倍にするとアダプターのパラメーターも 2 倍になります。通常は 8 から 64 です。</translation>
        </message>
        <message>
            <source>A larger alpha makes the adapter count more, much like a larger learning rate.</source>
            <translation>大きいほどアダプターの影響が強くなります。学習率を上げるのに似ています。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::HelpMenu</name>
        <message>
            <source>Help</source>
            <translation>ヘルプ</translation>
        </message>
        <message>
            <source>What does this mean?</source>
            <translation>これはどういう意味?</translation>
        </message>
        <message>
            <source>Shortcuts</source>
            <translation>ショートカット</translation>
        </message>
        <message>
            <source>About Millrace</source>
            <translation>Millrace について</translation>
        </message>
        <message>
            <source>Open log</source>
            <translation>ログを開く</translation>
        </message>
        <message>
            <source>Save report…</source>
            <translation>レポートを保存…</translation>
        </message>
        <message>
            <source>From your text to Ollama</source>
            <translation>文章から Ollama まで</translation>
        </message>
        <message>
            <source>What leaves this PC</source>
            <translation>この PC から送られるもの</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::HelpDialog</name>
        <message>
            <source>What does this mean?</source>
            <translation>これはどういう意味?</translation>
        </message>
        <message>
            <source>Shortcuts</source>
            <translation>ショートカット</translation>
        </message>
        <message>
            <source>Find</source>
            <translation>検索</translation>
        </message>
        <message>
            <source>Nothing here matches.</source>
            <translation>一致するものはありません。</translation>
        </message>
        <message>
            <source>Fine-tunes language models that are larger than the memory of the GPU, and shows where every second goes.</source>
            <translation>GPU のメモリより大きな言語モデルを微調整し、時間の使われ方をすべて示します。</translation>
        </message>
        <message>
            <source>Free software under the GNU General Public License, version 3 or later. There is no warranty.</source>
            <translation>GNU General Public License バージョン 3 以降に基づくフリーソフトウェアです。無保証です。</translation>
        </message>
        <message>
            <source>It contains or uses:</source>
            <translation>含まれる、または利用しているもの:</translation>
        </message>
        <message>
            <source>Close</source>
            <translation>閉じる</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ReportDialog</name>
        <message>
            <source>Include prompts, answers and notes of the last run</source>
            <translation>最後の実行のプロンプト、回答、メモを含める</translation>
        </message>
        <message>
            <source>Save report</source>
            <translation>レポートを保存</translation>
        </message>
        <message>
            <source>This is all that is saved: versions, this machine, the settings and messages of the last run, the end of the log. It names files and folders. Nothing is sent anywhere.</source>
            <translation>保存されるのはここに表示されるものだけです: バージョン、このマシン、最後の実行の設定とメッセージ、ログの末尾。ファイル名とフォルダー名が含まれます。どこにも送信されません。</translation>
        </message>
        <message>
            <source>Report</source>
            <translation>レポート</translation>
        </message>
        <message>
            <source>Collecting…</source>
            <translation>収集中…</translation>
        </message>
        <message>
            <source>Save…</source>
            <translation>保存…</translation>
        </message>
        <message>
            <source>Copy</source>
            <translation>コピー</translation>
        </message>
        <message>
            <source>Copied to the clipboard.</source>
            <translation>クリップボードにコピーしました。</translation>
        </message>
        <message>
            <source>%1 could not be written: %2</source>
            <translation>%1 に書き込めませんでした: %2</translation>
        </message>
        <message>
            <source>Saved to %1</source>
            <translation>%1 に保存しました</translation>
        </message>
        <message>
            <source>Close</source>
            <translation>閉じる</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::StartProblem</name>
        <message>
            <source>The history cannot be opened.</source>
            <translation>履歴を開けません。</translation>
        </message>
        <message>
            <source>Open another history…</source>
            <translation>別の履歴を開く…</translation>
        </message>
        <message>
            <source>Show folder</source>
            <translation>フォルダーを表示</translation>
        </message>
        <message>
            <source>Quit</source>
            <translation>終了</translation>
        </message>
        <message>
            <source>No file manager answered. The folder is %1</source>
            <translation>ファイルマネージャーが応答しませんでした。フォルダーは %1 です</translation>
        </message>
        <message>
            <source>Open another history, or name a new one</source>
            <translation>別の履歴を開くか、新しい履歴の名前を入力</translation>
        </message>
        <message>
            <source>Histories (*.db)</source>
            <translation>履歴 (*.db)</translation>
        </message>
        <message>
            <source>All files (*)</source>
            <translation>すべてのファイル (*)</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::MethodWords</name>
        <message>
            <source>All blocks, one at a time</source>
            <translation>すべてのブロックを 1 つずつ</translation>
        </message>
        <message>
            <source>Trains each block for some steps, then the next one; embedding and head stay as they are. Memory holds the optimizer state of one block, and the rest of the model is only read, also from its own files on an SSD. A step takes about 60 % of the time, and the run about twice the tokens.</source>
            <translation>1 つのブロックを数ステップ学習してから、次のブロックへ移ります。埋め込みとヘッドはそのままです。メモリに置くオプティマイザーの状態は 1 ブロック分だけで、モデルの残りは読むだけです (SSD 上のモデル自身のファイルからも)。1 ステップの時間は約 60 %、必要なトークンは約 2 倍です。</translation>
        </message>
        <message>
            <source>one block at a time</source>
            <translation>1 ブロックずつ</translation>
        </message>
        <message>
            <source>%1 of device memory</source>
            <translation>デバイスメモリ %1</translation>
        </message>
        <message>
            <source>%1 of host memory</source>
            <translation>ホストメモリ %1</translation>
        </message>
        <message>
            <source>%1 on disk</source>
            <translation>ディスク %1</translation>
        </message>
        <message>
            <source>Everything</source>
            <translation>すべて</translation>
        </message>
        <message>
            <source>An adapter (LoRA)</source>
            <translation>アダプター (LoRA)</translation>
        </message>
        <message>
            <source>Some layers</source>
            <translation>一部の層</translation>
        </message>
        <message>
            <source>Trains all weights of the model: the largest change, and the most memory.</source>
            <translation>モデルの重みをすべて学習します。変化は最も大きく、メモリも最も多く使います。</translation>
        </message>
        <message>
            <source>Trains small matrices beside the model, whose own weights stay as they are. The result is a small file that is used together with the model.</source>
            <translation>モデルの重みはそのままにし、横に加えた小さな行列を学習します。結果はモデルと一緒に使う小さなファイルです。</translation>
        </message>
        <message>
            <source>Trains the layers you name; the others stay as they are.</source>
            <translation>指定した層だけを学習し、ほかの層はそのままにします。</translation>
        </message>
        <message>
            <source>Not possible: %1</source>
            <translation>できません: %1</translation>
        </message>
        <message>
            <source>Does not fit. %1</source>
            <translation>収まりません。%1</translation>
        </message>
        <message>
            <source>%1 a step</source>
            <comment>a time</comment>
            <translation>1 ステップ %1</translation>
        </message>
        <message>
            <source>Fits: %1</source>
            <translation>収まります: %1</translation>
        </message>
        <message>
            <source>, </source>
            <comment>between needs</comment>
            <translation>、</translation>
        </message>
        <message>
            <source>Trains all %1 parameters</source>
            <translation>全パラメーター %1 を学習</translation>
        </message>
        <message>
            <source>Trains %1 parameters; the model has %2</source>
            <translation>学習するパラメーター %1 (モデル全体は %2)</translation>
        </message>
        <message>
            <source>adapter, rank %1</source>
            <translation>アダプター、ランク %1</translation>
        </message>
        <message>
            <source>layers %1</source>
            <comment>names of layers</comment>
            <translation>層 %1</translation>
        </message>
        <message>
            <source>An adapter beside the model in 4 bits (QLoRA)</source>
            <translation>4 ビットのモデルの横のアダプター (QLoRA)</translation>
        </message>
        <message>
            <source>Holds the model in a quarter of the memory, at some loss of accuracy. The adapter learns to make up for it.</source>
            <translation>モデルを 4 分の 1 のメモリで保持します。精度は少し下がりますが、アダプターがそれを補うように学習します。</translation>
        </message>
        <message>
            <source>QLoRA adapter, rank %1</source>
            <translation>QLoRA アダプター、ランク %1</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::MethodSection</name>
        <message>
            <source>What to train</source>
            <translation>学習する部分</translation>
        </message>
        <message>
            <source>%1, recommended</source>
            <comment>a method</comment>
            <translation>%1 (推奨)</translation>
        </message>
        <message>
            <source>For example %1-%2,head: the model has embedding, blocks 0 to %2 and head</source>
            <translation>例: %1-%2,head (このモデルには embedding、ブロック 0 から %2、head があります)</translation>
        </message>
        <message>
            <source>Name the layers to train, or choose to train everything.</source>
            <translation>学習する層を指定するか、「すべて」を選んでください。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::AdapterForm</name>
        <message>
            <source>Adapter to go on from (optional)</source>
            <translation>続きから学習するアダプター (任意)</translation>
        </message>
        <message>
            <source>Adapter to go on from</source>
            <translation>続きから学習するアダプター</translation>
        </message>
        <message>
            <source>Empty: a new adapter. Or a folder with adapter_config.json.</source>
            <translation>空欄: 新しいアダプター。または adapter_config.json のあるフォルダー。</translation>
        </message>
        <message>
            <source>Rank, alpha and modules come with this adapter.</source>
            <translation>ランク、アルファ、モジュールはこのアダプターのものを使います。</translation>
        </message>
        <message>
            <source>More settings of the adapter</source>
            <translation>アダプターの詳細設定</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ExportDialog</name>
        <message>
            <source>Ollama has it now: ollama run %1</source>
            <translation>Ollama に登録しました: ollama run %1</translation>
        </message>
        <message>
            <source>Ollama has no model of it: %1</source>
            <translation>Ollama には登録できませんでした: %1</translation>
        </message>
        <message>
            <source>Weights as</source>
            <translation>重みの形式</translation>
        </message>
        <message>
            <source>Show folder</source>
            <translation>フォルダーを表示</translation>
        </message>
        <message>
            <source>Export %1</source>
            <translation>%1 のエクスポート</translation>
        </message>
        <message>
            <source>Progress of the export</source>
            <translation>エクスポートの進み具合</translation>
        </message>
        <message>
            <source>For</source>
            <translation>用途</translation>
        </message>
        <message>
            <source>Write to</source>
            <translation>保存先</translation>
        </message>
        <message>
            <source>Close</source>
            <translation>閉じる</translation>
        </message>
        <message>
            <source>Export</source>
            <translation>エクスポート</translation>
        </message>
        <message>
            <source>Ollama</source>
            <translation>Ollama</translation>
        </message>
        <message>
            <source>LM Studio and llama.cpp (GGUF file)</source>
            <translation>LM Studio、llama.cpp（GGUF ファイル）</translation>
        </message>
        <message>
            <source>transformers, vLLM and others (model folder)</source>
            <translation>transformers、vLLM など（モデルのフォルダー）</translation>
        </message>
        <message>
            <source>PEFT (folder of the adapter alone)</source>
            <translation>PEFT（アダプターだけのフォルダー）</translation>
        </message>
        <message>
            <source>llama.cpp (GGUF file of the adapter alone)</source>
            <translation>llama.cpp（アダプターだけの GGUF ファイル）</translation>
        </message>
        <message>
            <source>A rented machine (goes on under PyTorch)</source>
            <translation>借りたマシン（PyTorch で続ける）</translation>
        </message>
        <message>
            <source>A folder with the model as a file, and a Modelfile: ollama create reads it. The file is asked what the model is before it gets its name.</source>
            <translation>モデルのファイルと Modelfile を入れたフォルダーです。ollama create で読み込めます。元のモデルと同じ質問をファイルにして、答えを確かめてから名前を付けます。</translation>
        </message>
        <message>
            <source>One file with weights, tokenizer and chat template. It is asked what the model is before it gets its name.</source>
            <translation>重み、トークナイザー、チャットテンプレートを入れた 1 つのファイルです。元のモデルと同じ質問をして、答えを確かめてから名前を付けます。</translation>
        </message>
        <message>
            <source>The model with the adapter in it, as safetensors.</source>
            <translation>アダプターを組み込んだモデルを safetensors で保存します。</translation>
        </message>
        <message>
            <source>The model as safetensors, with its tokenizer.</source>
            <translation>モデルを safetensors で、トークナイザーとともに保存します。</translation>
        </message>
        <message>
            <source>The adapter as it is, for the model that it was trained beside.</source>
            <translation>アダプターをそのまま保存します。学習に使ったモデルと組み合わせて使います。</translation>
        </message>
        <message>
            <source>The adapter beside a GGUF file of its model. Plain LoRA alone has such files.</source>
            <translation>モデルの GGUF ファイルと組み合わせるアダプターです。通常の LoRA だけに対応します。</translation>
        </message>
        <message>
            <source>Weights, optimizer, data in their order, and a program of PyTorch that continues the run. It holds your data: give it to no one who may not read it.</source>
            <translation>重み、オプティマイザー、順番どおりのデータ、実行を続ける PyTorch のプログラムです。データも含まれるため、読ませたくない人には渡さないでください。</translation>
        </message>
        <message>
            <source>automatic (as exact as trained)</source>
            <translation>自動（学習時と同じ精度）</translation>
        </message>
        <message>
            <source>automatic (as it is)</source>
            <translation>自動（そのまま）</translation>
        </message>
        <message>
            <source>q8_0: half the size of f16, hardly any loss</source>
            <translation>q8_0: f16 の約半分の大きさ、劣化はごくわずか</translation>
        </message>
        <message>
            <source>q4_k_m: a third of f16, some loss</source>
            <translation>q4_k_m: f16 の約 3 分の 1 の大きさ、多少劣化</translation>
        </message>
        <message>
            <source>Browse…</source>
            <translation>参照…</translation>
        </message>
        <message>
            <source>File or folder to write</source>
            <translation>書き込むファイルまたはフォルダー</translation>
        </message>
        <message>
            <source>GGUF files (*.gguf)</source>
            <translation>GGUF ファイル (*.gguf)</translation>
        </message>
        <message>
            <source>Reading the model…</source>
            <translation>モデルを読み込んでいます…</translation>
        </message>
        <message>
            <source>Checking what was written…</source>
            <translation>書き込んだ内容を確かめています…</translation>
        </message>
        <message>
            <source>Writing…</source>
            <translation>書き込んでいます…</translation>
        </message>
        <message>
            <source>Stopped. Nothing was left behind.</source>
            <translation>中止しました。ファイルは残っていません。</translation>
        </message>
        <message>
            <source>Written and checked: %1</source>
            <translation>書き込みと確認が終わりました: %1</translation>
        </message>
        <message>
            <source>It failed its check; do not use it: %1</source>
            <translation>確認に失敗しました。使わないでください: %1</translation>
        </message>
        <message>
            <source>Stop</source>
            <translation>中止</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::GetModelDialog</name>
        <message>
            <source>Show files</source>
            <translation>ファイルを表示</translation>
        </message>
        <message>
            <source>Use</source>
            <translation>使う</translation>
        </message>
        <message>
            <source>Get a model</source>
            <translation>モデルの取得</translation>
        </message>
        <message>
            <source>organisation/model, as on its page</source>
            <translation>組織名/モデル名（ページにあるとおり）</translation>
        </message>
        <message>
            <source>Model</source>
            <translation>モデル</translation>
        </message>
        <message>
            <source>Dataset</source>
            <translation>データセット</translation>
        </message>
        <message>
            <source>Kind</source>
            <translation>種類</translation>
        </message>
        <message>
            <source>Name</source>
            <translation>名前</translation>
        </message>
        <message>
            <source>Files</source>
            <translation>ファイル一覧</translation>
        </message>
        <message>
            <source>File</source>
            <translation>ファイル</translation>
        </message>
        <message>
            <source>Size</source>
            <translation>サイズ</translation>
        </message>
        <message>
            <source>State</source>
            <translation>状態</translation>
        </message>
        <message>
            <source>Progress of the download</source>
            <translation>取得の進み具合</translation>
        </message>
        <message>
            <source>Close</source>
            <translation>閉じる</translation>
        </message>
        <message>
            <source>Show files asks %1 for the list of files, with your token. Nothing else is sent.</source>
            <translation>「ファイルを表示」を押すと、トークンを付けて %1 にファイル一覧を問い合わせます。ほかには何も送りません。</translation>
        </message>
        <message>
            <source>Show files asks %1 for the list of files. Nothing else is sent.</source>
            <translation>「ファイルを表示」を押すと、%1 にファイル一覧を問い合わせます。ほかには何も送りません。</translation>
        </message>
        <message>
            <source>Asking for the list of files…</source>
            <translation>ファイル一覧を問い合わせています…</translation>
        </message>
        <message>
            <source>to be fetched</source>
            <translation>未取得</translation>
        </message>
        <message>
            <source>is there</source>
            <translation>取得済み</translation>
        </message>
        <message>
            <source>%1 are there</source>
            <translation>%1 取得済み</translation>
        </message>
        <message>
            <source>left out: %1</source>
            <translation>対象外: %1</translation>
        </message>
        <message>
            <source>%1 to be fetched of %2; %3 free on the disk.</source>
            <translation>%2 中 %1 を取得します。ディスクの空きは %3 です。</translation>
        </message>
        <message>
            <source>Goes to %1</source>
            <translation>保存先: %1</translation>
        </message>
        <message>
            <source>The disk is too full. Make room, or set HF_HOME to a folder elsewhere.</source>
            <translation>ディスクの空きが足りません。空きを増やすか、HF_HOME に別のフォルダーを設定してください。</translation>
        </message>
        <message>
            <source>Fetched and checked: %1</source>
            <translation>取得と確認が終わりました: %1</translation>
        </message>
        <message>
            <source>Asking %1…</source>
            <translation>%1 に接続しています…</translation>
        </message>
        <message>
            <source>Stopped. What was fetched is kept; Fetch goes on from there.</source>
            <translation>中止しました。取得した分は残っており、「取得」で続きから始められます。</translation>
        </message>
        <message>
            <source>Stop</source>
            <translation>中止</translation>
        </message>
        <message>
            <source>Fetch</source>
            <translation>取得</translation>
        </message>
        <message>
            <source>%1 of %2 files</source>
            <translation>ファイル %2 個中 %1 個</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::HelpPage</name>
        <message>
            <source>Back</source>
            <translation>戻る</translation>
        </message>
        <message>
            <source>Close</source>
            <translation>閉じる</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::LocalModelTable</name>
        <message>
            <source>Folder</source>
            <translation>フォルダー</translation>
        </message>
        <message>
            <source>Train</source>
            <translation>学習</translation>
        </message>
        <message>
            <source>Adapter only</source>
            <translation>アダプターのみ</translation>
        </message>
        <message>
            <source>Nothing</source>
            <translation>不可</translation>
        </message>
        <message>
            <source>Name</source>
            <translation>名前</translation>
        </message>
        <message>
            <source>Can</source>
            <translation>できること</translation>
        </message>
        <message>
            <source>Size</source>
            <translation>サイズ</translation>
        </message>
        <message>
            <source>Parameters</source>
            <translation>パラメーター数</translation>
        </message>
        <message>
            <source>Architecture</source>
            <translation>アーキテクチャ</translation>
        </message>
        <message>
            <source>Licence</source>
            <translation>ライセンス</translation>
        </message>
        <message>
            <source>From</source>
            <translation>保管元</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ModelsDialog</name>
        <message>
            <source>Export…</source>
            <translation>エクスポート…</translation>
        </message>
        <message>
            <source>Writes it for other programs</source>
            <translation>ほかのプログラム用に書き出します</translation>
        </message>
        <message>
            <source>Forget folder</source>
            <translation>フォルダーを外す</translation>
        </message>
        <message>
            <source>Models on this PC</source>
            <translation>この PC にあるモデル</translation>
        </message>
        <message>
            <source>Add folder…</source>
            <translation>フォルダーを追加…</translation>
        </message>
        <message>
            <source>Filter: name, architecture, licence</source>
            <translation>絞り込み: 名前、アーキテクチャ、ライセンス</translation>
        </message>
        <message>
            <source>Filter of the models</source>
            <translation>モデルの絞り込み</translation>
        </message>
        <message>
            <source>Use</source>
            <translation>使う</translation>
        </message>
        <message>
            <source>Get a model…</source>
            <translation>モデルを取得…</translation>
        </message>
        <message>
            <source>Close</source>
            <translation>閉じる</translation>
        </message>
        <message>
            <source>Puts its folder into the run</source>
            <translation>そのフォルダーを実行のモデルにします</translation>
        </message>
        <message>
            <source>Looking for models…</source>
            <translation>モデルを探しています…</translation>
        </message>
        <message>
            <source>%1: %2</source>
            <comment>place, fault</comment>
            <translation>%1: %2</translation>
        </message>
        <message>
            <source>%1: there is no such folder</source>
            <translation>%1: このフォルダーはありません</translation>
        </message>
        <message>
            <source>No models were found. These places were looked at:</source>
            <translation>モデルは見つかりませんでした。次の場所を探しました:</translation>
        </message>
        <message>
            <source>%1 (is not there)</source>
            <translation>%1（ありません）</translation>
        </message>
        <message>
            <source>Get a model, or add a folder that has some in it. Model folders with a config.json and GGUF files are found up to four folders below it.</source>
            <translation>モデルを取得するか、モデルのあるフォルダーを追加してください。config.json のあるモデルフォルダーと GGUF ファイルを、4 階層下まで探します。</translation>
        </message>
        <message numerus="yes">
            <source>%n model(s), %1 on the disk</source>
            <translation>
                <numerusform>モデル %n 個、ディスク上で %1</numerusform>
            </translation>
        </message>
        <message>
            <source>%1 of %2 models shown</source>
            <translation>%2 個中 %1 個を表示</translation>
        </message>
        <message>
            <source>Look for models below</source>
            <translation>モデルを探すフォルダー</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ProgressLine</name>
        <message>
            <source>%1 of %2</source>
            <translation>%2 中 %1</translation>
        </message>
        <message>
            <source>%1, %2</source>
            <comment>parts of a line</comment>
            <translation>%1、%2</translation>
        </message>
        <message>
            <source>%1, %2 left</source>
            <translation>%1、残り %2</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::OllamaRow</name>
        <message>
            <source>Create the model in Ollama as</source>
            <translation>Ollama に登録する。モデル名:</translation>
        </message>
        <message>
            <source>The Ollama that runs on this PC is asked to make a model of the file. Nothing goes to another machine.</source>
            <translation>この PC で動いている Ollama に、このファイルからモデルを作らせます。ほかのマシンには何も送りません。</translation>
        </message>
        <message>
            <source>Name of the model in Ollama</source>
            <translation>Ollama でのモデル名</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::ExportTableModel</name>
        <message>
            <source>Model folder</source>
            <translation>モデルフォルダー</translation>
        </message>
        <message>
            <source>GGUF file</source>
            <translation>GGUF ファイル</translation>
        </message>
        <message>
            <source>Ollama folder</source>
            <translation>Ollama フォルダー</translation>
        </message>
        <message>
            <source>Adapter folder (PEFT)</source>
            <translation>アダプターフォルダー（PEFT）</translation>
        </message>
        <message>
            <source>Adapter as a GGUF file</source>
            <translation>アダプターの GGUF ファイル</translation>
        </message>
        <message>
            <source>Job for PyTorch</source>
            <translation>PyTorch 用ジョブ</translation>
        </message>
        <message>
            <source>Passed its check</source>
            <translation>確認に合格</translation>
        </message>
        <message>
            <source>Failed its check</source>
            <translation>確認に失敗</translation>
        </message>
        <message>
            <source>Form</source>
            <translation>形式</translation>
        </message>
        <message>
            <source>Check</source>
            <translation>確認</translation>
        </message>
        <message>
            <source>Weights as</source>
            <translation>重みの形式</translation>
        </message>
        <message>
            <source>Size</source>
            <translation>サイズ</translation>
        </message>
        <message>
            <source>Written</source>
            <translation>作成日時</translation>
        </message>
        <message>
            <source>Path</source>
            <translation>パス</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::RowCheckWords</name>
        <message>
            <source>not JSON</source>
            <translation>JSON ではありません</translation>
        </message>
        <message>
            <source>not UTF-8</source>
            <translation>UTF-8 ではありません</translation>
        </message>
        <message>
            <source>holds a byte of value 0</source>
            <translation>値が 0 のバイトを含みます</translation>
        </message>
        <message>
            <source>not shaped as the rows before it</source>
            <translation>前の行と形が違います</translation>
        </message>
        <message>
            <source>more or fewer cells than the first row</source>
            <translation>セルの数が最初の行と違います</translation>
        </message>
        <message>
            <source>a column does not hold what it is used for</source>
            <translation>列の内容が用途に合いません</translation>
        </message>
        <message>
            <source>the chat template cannot write it</source>
            <translation>チャットテンプレートで書けません</translation>
        </message>
        <message>
            <source>the chat template leaves out a part of it</source>
            <translation>チャットテンプレートが一部を書きません</translation>
        </message>
        <message>
            <source>no token of it is trained</source>
            <translation>学習するトークンがありません</translation>
        </message>
        <message>
            <source>what comes before the answer fills the sequence</source>
            <translation>答えの前の部分でシーケンスが埋まります</translation>
        </message>
        <message>
            <source>longer than the sequence</source>
            <translation>シーケンスより長い行です</translation>
        </message>
        <message>
            <source>an answer is empty</source>
            <translation>答えが空です</translation>
        </message>
        <message>
            <source>a question is empty</source>
            <translation>質問が空です</translation>
        </message>
        <message>
            <source>the text is empty</source>
            <translation>テキストが空です</translation>
        </message>
        <message>
            <source>a system text stands behind other turns</source>
            <translation>システム文が他の発言の後にあります</translation>
        </message>
        <message>
            <source>an answer stands before any question</source>
            <translation>質問より前に答えがあります</translation>
        </message>
        <message>
            <source>a tool&apos;s result stands behind no call</source>
            <translation>呼び出しのないツール結果があります</translation>
        </message>
        <message>
            <source>two questions follow each other</source>
            <translation>質問が 2 つ続いています</translation>
        </message>
        <message>
            <source>two answers follow each other</source>
            <translation>答えが 2 つ続いています</translation>
        </message>
        <message>
            <source>nothing answers the last turn</source>
            <translation>最後の発言に答えがありません</translation>
        </message>
        <message>
            <source>characters were lost: U+FFFD stands in their place</source>
            <translation>文字が失われ、U+FFFD になっています</translation>
        </message>
        <message>
            <source>UTF-8 was read as Windows-1252</source>
            <translation>UTF-8 が Windows-1252 として読まれています</translation>
        </message>
        <message>
            <source>repeats an earlier row</source>
            <translation>前の行と同じです</translation>
        </message>
        <message>
            <source>nearly repeats an earlier row</source>
            <translation>前の行とほぼ同じです</translation>
        </message>
        <message>
            <source>stands in the evaluation data</source>
            <translation>評価データにあります</translation>
        </message>
        <message>
            <source>nearly repeats a row of the evaluation data</source>
            <translation>評価データの行とほぼ同じです</translation>
        </message>
        <message>
            <source>Cannot be read</source>
            <translation>読めない行</translation>
        </message>
        <message>
            <source>Lose a part in the chat template</source>
            <translation>テンプレートで一部が失われる行</translation>
        </message>
        <message>
            <source>Train nothing</source>
            <translation>学習するものがない行</translation>
        </message>
        <message>
            <source>Are cut</source>
            <translation>切られる行</translation>
        </message>
        <message>
            <source>Have an empty turn</source>
            <translation>空の発言がある行</translation>
        </message>
        <message>
            <source>Have turns out of order</source>
            <translation>発言の順序がおかしい行</translation>
        </message>
        <message>
            <source>Have lost characters</source>
            <translation>文字化けした行</translation>
        </message>
        <message>
            <source>Repeat an earlier row</source>
            <translation>前の行と同じ行</translation>
        </message>
        <message>
            <source>Nearly repeat an earlier row</source>
            <translation>前の行とほぼ同じ行</translation>
        </message>
        <message>
            <source>Stand in the evaluation data</source>
            <translation>評価データにある行</translation>
        </message>
        <message>
            <source>A run refuses the file because of them, unless they are left out.</source>
            <translation>除外しないかぎり、実行はこのファイルを受け付けません。</translation>
        </message>
        <message>
            <source>The template has no place for a part of the conversation. A run refuses such rows, unless the part or the row is left out.</source>
            <translation>テンプレートに会話の一部を書く場所がありません。その部分か行を除外しないかぎり、実行は受け付けません。</translation>
        </message>
        <message>
            <source>A run skips them.</source>
            <translation>実行では飛ばされます。</translation>
        </message>
        <message>
            <source>They are longer than the sequence length: a run trains their beginning.</source>
            <translation>シーケンス長より長いため、始めの部分だけを学習します。</translation>
        </message>
        <message>
            <source>A model that learns an empty answer learns to say nothing.</source>
            <translation>空の答えを学ぶと、モデルは何も答えなくなります。</translation>
        </message>
        <message>
            <source>Conversations go in turns: a question, then its answer.</source>
            <translation>会話は質問とその答えが交互に並びます。</translation>
        </message>
        <message>
            <source>The text was read in the wrong encoding before, and the model would learn it so.</source>
            <translation>以前に誤った文字コードで読まれた文で、モデルはそのまま学んでしまいます。</translation>
        </message>
        <message>
            <source>A row that comes twice weighs twice.</source>
            <translation>2 回現れる行は 2 倍の重みになります。</translation>
        </message>
        <message>
            <source>At least four of five runs of five words are those of an earlier row, and so are its answers. This is an estimate.</source>
            <translation>連続する 5 語の並びの 5 分の 4 以上と答えが、前の行と同じです。推定値です。</translation>
        </message>
        <message>
            <source>The evaluation would ask what was trained, and look better than it is.</source>
            <translation>学習した内容で評価することになり、実際より良く見えます。</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::CheckedRowTable</name>
        <message>
            <source>Row</source>
            <translation>行番号</translation>
        </message>
        <message>
            <source>Line</source>
            <translation>ファイルの行</translation>
        </message>
        <message>
            <source>Finding</source>
            <translation>所見</translation>
        </message>
        <message>
            <source>As row</source>
            <translation>同じ行</translation>
        </message>
        <message>
            <source>Text</source>
            <translation>内容</translation>
        </message>
    </context>
    <context>
        <name>mr::ui::RowChecksDialog</name>
        <message>
            <source>Leave out the ticked rows</source>
            <translation>チェックした行を除外</translation>
        </message>
        <message>
            <source>Rows of %1</source>
            <translation>%1 の行</translation>
        </message>
        <message>
            <source>Rows of the finding</source>
            <translation>所見の行</translation>
        </message>
        <message>
            <source>Findings</source>
            <translation>所見</translation>
        </message>
        <message>
            <source>Close</source>
            <translation>閉じる</translation>
        </message>
        <message>
            <source>Checking: %1 rows so far…</source>
            <translation>確認中: %1 行まで終わりました…</translation>
        </message>
        <message>
            <source>%1 rows were checked, and nothing was found.</source>
            <translation>%1 行を確認し、問題はありませんでした。</translation>
        </message>
        <message>
            <source>%1 rows were checked. Tick what a run leaves out; the file stays as it is.</source>
            <translation>%1 行を確認しました。実行から除外するものにチェックしてください。ファイルは変わりません。</translation>
        </message>
        <message>
            <source>%1: %2</source>
            <comment>finding, number of rows</comment>
            <translation>%1: %2</translation>
        </message>
        <message numerus="yes">
            <source>A sequence length of %1 keeps %2 of the tokens and cuts %n row(s).</source>
            <translation>
                <numerusform>シーケンス長 %1 では、トークンの %2 を使い、%n 行を切ります。</numerusform>
            </translation>
        </message>
        <message>
            <source>One of %1 cuts none.</source>
            <translation>%1 なら切られる行はありません。</translation>
        </message>
        <message numerus="yes">
            <source>%n row(s) will be left out.</source>
            <translation>
                <numerusform>%n 行を除外します。</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>mr::ui::TableWindow</name>
        <message>
            <source>Copy</source>
            <translation>コピー</translation>
        </message>
    </context>
</TS>
