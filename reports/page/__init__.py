"""What a page is made of: sections, tables, grids, charts."""
