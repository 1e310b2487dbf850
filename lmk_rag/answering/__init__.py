"""What `lmk_rag.answer` is made of: sentences, the threshold, the prompt, the check of citations."""
