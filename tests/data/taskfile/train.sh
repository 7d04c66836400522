#!/bin/bash
# Trains the tiny model.
#COLLOC --job-name='tiny model' -G 2   # two GPUs
#COLLOC --summary=tiny.txt --batch=64 --time=1:30:00
#COLLOC --memory 6G --sharing mps --exclusive

python train.py
