from dualread.reporting.tables._latex import escape, float_table, group_label, multirow, row, spanning


def test_escape_leaves_nothing_that_latex_reads_as_a_command():
    assert escape(r"a_b & 5% of $x$ #1 {y} ~ ^ \z") == (
        r"a\_b \& 5\% of \$x\$ \#1 \{y\} \textasciitilde{} \textasciicircum{} \textbackslash{}z"
    )
    assert escape("P(True)\n<ok>") == r"P(True) \textless{}ok\textgreater{}"


def test_rows():
    assert row(["a", "b"]) == r"a & b \\"
    assert multirow(1, "x") == "x"
    assert multirow(3, "x") == r"\multirow{3}{*}{x}"


def test_a_group_label_is_stacked_where_there_is_room():
    assert group_label(1, "Hidden state") == "Hidden state"
    assert group_label(2, "Hidden state") == r"\multirow{2}{*}{\shortstack[l]{Hidden\\state}}"


def test_float_table_is_wide_only_where_asked():
    parts = {"name": "t", "columns": "lc", "head": ["h"], "body": ["b"], "caption": "c"}
    assert r"\begin{table*}" in float_table(wide=True, **parts)
    narrow = float_table(wide=False, **parts)
    assert r"\begin{table}" in narrow
    assert r"\columnwidth" in narrow
    assert "t.csv" in narrow


def test_titles_span_columns_and_have_rules_below():
    # two columns of labels, then 3 and 1 columns: 3 to 5, and 6
    assert spanning(2, [("A", 3), ("B", 1)]) == [
        r" &  & \multicolumn{3}{c}{A} & \multicolumn{1}{c}{B} \\",
        r"\cmidrule(lr){3-5}\cmidrule(lr){6-6}",
    ]
