"""The programs and numbers of the five founding articles; docs/articles.md leads from their names to ours."""
