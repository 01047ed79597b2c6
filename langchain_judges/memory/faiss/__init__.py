"""An embedded LangChain vector store on FAISS, saved without pickle."""
